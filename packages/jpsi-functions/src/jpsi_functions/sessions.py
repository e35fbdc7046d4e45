"""The files of calls: a folder for each executor object, in which each job has a folder of its own.

    functions/slurm/<session>/lock         locked (flock) by the process that made the calls
                              client.json  the description of its Python
                              worker.py    what the jobs run
                              functions/   the pickles of functions, which calls have links to
                              calls/<number>.<attempt>.<items>.<job id>/   one folder for each job
                                  cancelled, failed    a mark, if the calls are not to be made any more

While a session is made or removed its name begins with a dot, so that no process recovers a part of it.
All of it is private to the user. A session is removed when its executor is shut down, or, if its process was
killed, once it is as old as jpsi keeps the files of jobs.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import attrs

from jpsi_engine import check_private_directory, make_directory, make_private_directory, open_private

from . import worker
from .locks import lock_file

#: The files that the worker writes; the second one until the first is complete.
OUTPUTS = ("result", "result.part")
# How long a process makes or removes a session at most.
_MAKING_SECONDS = 3600.0


@attrs.frozen
class StoredCall:
    """The folder of a job's calls, from what its name says."""

    folder: Path
    #: The position among the calls of the session.
    number: int
    #: The number of times that the calls were continued by another job after a checkpoint.
    attempt: int
    #: The number of calls that the job makes.
    items: int
    job_id: str

    def mark(self, name: str, text: str = "") -> None:
        """Leave word on disk that the calls were `cancelled` or have `failed`."""
        _write(self.folder / name, text.encode())

    def marked(self, name: str) -> str | None:
        """Return the text of a mark, or None without it."""
        with contextlib.suppress(FileNotFoundError), (self.folder / name).open(encoding="utf-8") as file:
            return file.read()
        return None

    def moved_to(self, job_id: str) -> StoredCall:
        """Give the calls to another job, as their own was never submitted."""
        target = self.folder.with_name(_call_name(self.number, self.attempt, self.items, job_id))
        self.folder.rename(target)
        return attrs.evolve(self, folder=target, job_id=job_id)


class Session:
    """The files of the calls of one executor object. Any thread may use it."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock_fd = lock
        self._guard = threading.Lock()
        self._count = 0
        # the functions that have been written, by the digests of their pickles
        self._functions: dict[bytes, Path] = {}

    @classmethod
    def create(cls, root: Path, client: Mapping[str, Any]) -> Self:
        """Make a session below `root`.

        Raises:
            ConfigError: other users could change `root`, or its file system has no locks.
            OSError: it cannot be written.
        """
        make_private_directory(root, "the directory for calls")
        # under another name until it is locked, or else a process that recovers calls could take it
        name = uuid.uuid4().hex
        unlocked = root / f".{name}"
        make_directory(str(unlocked))
        try:
            lock = lock_file(unlocked / "lock")
        except BaseException:
            shutil.rmtree(unlocked, ignore_errors=True)
            raise
        folder = unlocked.rename(root / name)
        session = cls(folder, lock)
        make_directory(str(folder / "calls"))
        make_directory(str(folder / "functions"))
        _write(folder / "worker.py", Path(worker.__file__).read_bytes())
        _write(folder / "client.json", json.dumps(client).encode())
        return session

    @classmethod
    def abandoned(cls, root: Path) -> Iterator[Self]:
        """Yield the sessions of processes that have ended, the oldest first, each locked by this process."""
        for folder in sorted(_folders(root), key=_changed):
            session = None
            # another process may remove it at this moment
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                check_private_directory(folder, "the folder of calls")
                session = cls(folder, lock_file(folder / "lock"))
            if session is not None:
                yield session

    def add_call(self, job_id: str, items: int, function: bytes, arguments: bytes) -> StoredCall:
        """Write what a job needs for its calls."""
        with self._guard:
            number = self._count
            self._count += 1
        return self._write_call(_call_name(number, 0, items, job_id), function, arguments)

    def continue_call(self, ended: StoredCall, job_id: str, function: bytes, arguments: bytes) -> StoredCall:
        """Write what another job needs to continue a call, and remove the files of the one that has ended."""
        name = _call_name(ended.number, ended.attempt + 1, ended.items, job_id)
        following = self._write_call(name, function, arguments)
        shutil.rmtree(ended.folder, ignore_errors=True)
        return following

    def _write_call(self, call_name: str, function: bytes, arguments: bytes) -> StoredCall:
        folder = self.folder / "calls" / call_name
        make_directory(str(folder))
        with self._guard:
            shared = self._function_file(function)
            for name, source in (("worker.py", None), ("client.json", None), ("function", shared)):
                _link(source or self.folder / name, folder / name)
        _write(folder / "arguments", arguments)
        return _stored_call(folder)

    def _function_file(self, function: bytes) -> Path:
        digest = hashlib.sha256(function).digest()
        if digest not in self._functions:
            path = self.folder / "functions" / digest.hex()
            _write(path, function)
            self._functions[digest] = path
        return self._functions[digest]

    def calls(self) -> list[StoredCall]:
        """Return the last attempt of each call that is on disk, in the order in which they were made."""
        names = (self.folder / "calls").iterdir() if (self.folder / "calls").is_dir() else ()
        stored = [_stored_call(path) for path in names if (path / "arguments").exists()]
        in_order = sorted(stored, key=lambda it: (it.number, it.attempt))
        return list({it.number: it for it in in_order}.values())

    def remove(self) -> None:
        """Remove the files of the session: all at once for `abandoned`, even if this process is killed."""
        removed = self.folder.with_name(f".{self.folder.name}")
        with contextlib.suppress(OSError):
            self.folder.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let other processes recover the calls of this session."""
        with self._guard:
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
                self._lock_fd = -1


def remove_old(root: Path, keep_time: timedelta) -> None:
    """Remove sessions without a process whose last call is older than `keep_time`."""
    oldest = time.time() - keep_time.total_seconds()
    for session in Session.abandoned(root):
        if max(_changed(session.folder / "calls"), _changed(session.folder)) < oldest:
            session.remove()
        else:
            session.close()
    # what a process that was killed began to make or to remove
    for folder in root.glob(".*"):
        if 0 < _changed(folder) < min(oldest, time.time() - _MAKING_SECONDS):
            shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return [it for it in root.iterdir() if it.is_dir() and not it.name.startswith(".")]
    return []


def _changed(folder: Path) -> float:
    """Return the time at which the entries of a folder changed; 0 if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return folder.stat().st_mtime
    return 0.0


def _stored_call(folder: Path) -> StoredCall:
    number, attempt, items, job_id = folder.name.split(".")
    return StoredCall(folder, int(number), int(attempt), int(items), job_id)


def _call_name(number: int, attempt: int, items: int, job_id: str) -> str:
    return f"{number:08d}.{attempt}.{items}.{job_id}"


def _write(path: Path, data: bytes) -> None:
    """Write a private file, which appears whole or not at all."""
    part = path.with_name(f"{path.name}.new")
    with os.fdopen(open_private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)
    part.rename(path)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; a copy, where the file system has no hard links.

    ext4 has 65,000 links for a file at most: then the source becomes a file with one link again.
    """
    try:
        target.hardlink_to(source)
    except OSError as e:
        data = source.read_bytes()
        _write(target, data)
        if e.errno == errno.EMLINK:
            _write(source, data)
