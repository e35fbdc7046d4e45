"""The files by which processes of one user share polls, and the lock of the process that polls.

    <root>/shared_poll/<boot>/lock            held while a process polls
    <root>/shared_poll/<boot>/snapshot.json   the last snapshot of the batch system
    <root>/shared_poll/<boot>/<name>.json     the jobs that one process wants polled, and until when
    <root>/shared_poll/<boot>/<name>.<n>.new  a file that is being written
    <root>/shared_poll/<boot>/missing/        see `jpsi_engine.scheduler.absences`

Times in the files are those of `time.monotonic`: all processes of a machine share that clock, no user can set
it, and it restarts with each boot. So there is a folder for each boot of each machine. Machines do not share
polls. Their clocks differ, and a network file system shows the writes and locks of another machine late or
never; processes on several machines poll once per machine.

Nothing in this module raises an OSError: if the files cannot be used, each process polls for itself.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi_engine.host import NO_BOOT, boot_id, forget, hold_lock, make_directory, open_private
from jpsi_engine.scheduler.snapshot import Snapshot, decode, encode

log = logging.getLogger(__name__)

_VERSION = 4
_SNAPSHOT = "snapshot"
_JSON = ".json"
_OLD_SECONDS = 7 * 24 * 3600.0
#: The identity of one written file, which distinguishes it from earlier and later files of the same name.
_File = tuple[int, int, int, int]
# The exceptions that a file of unexpected content raises when it is decoded.
_DECODE_ERRORS = (AttributeError, LookupError, TypeError, ValueError, RecursionError)


class SharedPoll:
    """The part of one process in the shared polls. Methods may be called from any thread.

    Each call names the batch system by its digest (`system`): snapshots of another batch system do not count.

    Args:
        root: the folder of the executor and target, which is private to the user.
    """

    def __init__(self, root: str) -> None:
        self._name = os.urandom(8).hex()
        self._parent = f"{root}/shared_poll"
        # If the boot has no name, times of the last boot look like those of this one: nothing is shared then.
        self._folder = f"{self._parent}/{boot_id() if boot_id() != NO_BOOT else self._name}"
        self._announced: tuple[str, frozenset[str]] | None = None
        # The last snapshot that this process wrote, its batch system, and the identity of its file.
        self._written_snapshot: tuple[_File, str, Snapshot] | None = None
        self._renewal = 0.0

    @contextlib.contextmanager
    def lock_polling(self) -> Iterator[bool]:
        """Hold the lock of the process that polls; yield False while another process holds it."""
        with contextlib.ExitStack() as lock:
            is_held = None
            try:
                is_held = lock.enter_context(hold_lock(f"{self._folder}/lock", 0.0, create=True))
            except OSError:
                log.debug("%s cannot be locked; each process polls for itself", self._folder, exc_info=True)
            yield is_held is not False

    def read_snapshot(self, system: str, now: float) -> Snapshot | None:
        """Return the last snapshot; None if there is none that can be decoded."""
        snapshot = self._own_snapshot(system) or self._decode_snapshot(system)
        return snapshot if snapshot is not None and snapshot.begun <= snapshot.ended <= now else None

    def _own_snapshot(self, system: str) -> Snapshot | None:
        """Return the last snapshot if this process wrote it, without decoding its file.

        Decoding takes the longer the more jobs a snapshot holds.
        """
        if self._written_snapshot is None:
            return None
        file, digest, snapshot = self._written_snapshot
        try:
            is_there = file == _identify(os.stat(f"{self._folder}/{_SNAPSHOT}{_JSON}"))  # noqa: PTH116
        except OSError:
            return None
        return snapshot if is_there and digest == system else None

    def _decode_snapshot(self, system: str) -> Snapshot | None:
        """Return the last snapshot, decoded from its file."""
        plain = self._read(_SNAPSHOT)
        if plain.get("system") != system:
            return None
        try:
            return decode(plain)
        except _DECODE_ERRORS:
            log.debug("the snapshot in %s cannot be decoded", self._folder, exc_info=True)
            return None

    def write_snapshot(self, system: str, snapshot: Snapshot) -> None:
        """Write a snapshot for other processes, unless they have a newer one."""
        last = self.read_snapshot(system, snapshot.ended)
        if last is not None and last.begun > snapshot.begun:
            return
        file = self._write(_SNAPSHOT, {"system": system, **encode(snapshot)})
        self._written_snapshot = None if file is None else (file, system, snapshot)

    def announce(self, system: str, native_ids: frozenset[str], now: float, seconds: float) -> None:
        """Have other processes poll about these jobs too, for so many seconds."""
        if self._announced == (system, native_ids) and now < self._renewal:
            return
        if self._announced is None:
            self._make_folder()
        content = {"system": system, "until": now + seconds, "native_ids": sorted(native_ids)}
        is_written = self._write(self._name, content) is not None
        self._announced, self._renewal = (system, native_ids) if is_written else None, now + seconds / 2

    def wanted_by_others(self, system: str, now: float) -> set[str]:
        """Return the jobs that other processes want polled; remove the files of those whose lease is over."""
        found: set[str] = set()
        names = _names(self._folder)
        for name in names:
            process_name, ending = os.path.splitext(name)  # noqa: PTH122  text, as in the spool
            if ending != _JSON or process_name in {_SNAPSHOT, self._name}:
                continue
            plain = self._read(process_name)
            with contextlib.suppress(*_DECODE_ERRORS):
                if plain["until"] < now:
                    for file in names:
                        if file.startswith(f"{process_name}."):
                            forget(f"{self._folder}/{file}")
                elif plain["system"] == system:
                    found.update(map(str, plain["native_ids"]))
        return found

    def _make_folder(self) -> None:
        with contextlib.suppress(OSError):
            for folder in (self._parent, self._folder):
                with contextlib.suppress(FileExistsError):
                    make_directory(folder)
            # a file that was touched now shows the time by the clock of the file system
            os.utime(self._folder)
            now = os.stat(self._folder).st_mtime  # noqa: PTH116
            for name in _names(self._parent):
                if now - os.stat(f"{self._parent}/{name}").st_mtime > _OLD_SECONDS:  # noqa: PTH116
                    shutil.rmtree(f"{self._parent}/{name}", ignore_errors=True)

    def _read(self, name: str) -> Mapping[str, Any]:
        """Return the content of a file of this version; an empty mapping if there is none."""
        try:
            with open(f"{self._folder}/{name}{_JSON}", encoding="ascii") as file:  # noqa: PTH123
                plain = json.load(file)
        except (OSError, *_DECODE_ERRORS):
            return {}
        return plain if isinstance(plain, dict) and plain.get("version") == _VERSION else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> _File | None:
        """Write a file by renaming, so that it appears whole; return its identity, None if that failed."""
        new = f"{self._folder}/{self._name}.{threading.get_ident()}.new"
        try:
            text = json.dumps({"version": _VERSION, **content})
            fd = open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(fd, "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)
                file.flush()
                written = _identify(os.fstat(fd))
            os.rename(new, f"{self._folder}/{name}{_JSON}")  # noqa: PTH104
        except (OSError, *_DECODE_ERRORS):
            log.debug("%s/%s could not be written", self._folder, name, exc_info=True)
            forget(new)
            return None
        return written


def _identify(stat: os.stat_result) -> _File:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []
