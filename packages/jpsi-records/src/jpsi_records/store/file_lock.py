"""Locks the SQLite database by a lock file if it is on a network file system.

The locks of such a file system may not work. A process holds the lock if it has created the file; the file
names the process. If the holder has ended on this machine, the next process removes the file. For a holder on
another machine a process cannot know that: when it has waited too long, a `StoreError` names the holder and
the file to remove.

A dispatcher's lease names its process as well. Process ids are reused, so a name also has the boot id, the
pid namespace and the start time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import StoreError, store_errors

_RETRY_SECONDS = 0.02


class FileLock:
    """A lock that one process at a time holds.

    Args:
        path: the lock file.
        timeout: the seconds that a process waits for another to release the lock.
        sleep: sleeps for the given seconds.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._timeout = timeout
        self._sleep = sleep
        self._clock = clock

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        """Wait until the lock is free, then hold it.

        Raises:
            StoreError: another process has held the lock for too long, or the file cannot be created.
        """
        with store_errors(f"{self._path}, the lock of the records, cannot be created"):
            self._acquire()
        try:
            yield
        finally:
            self._path.unlink()

    def _acquire(self) -> None:
        own_name = name_of_this_process()
        end = self._clock() + self._timeout
        while not _make(self._path, own_name):
            self._break_stale_lock()
            if self._clock() > end:
                raise StoreError(
                    f"{describe_process(self._read_holder() or '')} has been using the records for too long; "
                    f"if it is not there any more, remove {self._path}"
                )
            self._sleep(_RETRY_SECONDS)

    def _read_holder(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _break_stale_lock(self) -> None:
        holder = self._read_holder()
        if holder is None or not process_has_ended(holder):
            return
        # Only one of the processes that see the stale lock may remove it: a second one might remove the lock
        # of the next holder. The second lock file elects it.
        name = hashlib.sha256(holder.encode()).hexdigest()[:16]
        breaker = self._path.with_name(f"{self._path.name}.{name}")
        if not _make(breaker, ""):
            return
        try:
            if self._read_holder() == holder:
                self._path.unlink()
        finally:
            breaker.unlink()


def _make(path: Path, text: str) -> bool:
    """Create a file exclusively; return False if it exists."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    with file:
        file.write(text)
    return True


# From proc_pid_stat(5): the indices of fields, counted from the field after the name in parentheses.
_STATE = 0
_START = 19
# Used for what cannot be known without /proc.
_UNKNOWN = "-"
# Used as the start time of a zombie: it has ended, but its parent has not waited for it yet.
_ENDED = "ended"


def name_of_this_process() -> str:
    """Return a new name: host, boot id, pid namespace, pid, start time and a random number."""
    pid = os.getpid()
    return f"{socket.gethostname()} {_place()} {pid} {_started(pid) or _UNKNOWN} {os.urandom(8).hex()}"


def process_has_ended(name: str) -> bool:
    """Return True if a named process has certainly ended; on another machine that is never certain."""
    words = name.split()
    if len(words) != 6:  # noqa: PLR2004  the name is still being written
        return False
    _, boot, space, pid, start, _ = words
    if _UNKNOWN in {boot, start} or f"{boot} {space}" != _place():
        return False
    now = _started(int(pid))
    return not _is_there(int(pid)) if now is None else now != start


def describe_process(name: str) -> str:
    """Return a process name in the form that users need to find the process.

    >>> describe_process("node1 b6a2 pid:[4026531836] 12 3456 9f")
    'process 12 on node1'
    """
    host, _, _, pid, *_ = (*name.split(), *["?"] * 4)
    return f"process {pid} on {host}"


def _place() -> str:
    """Return the boot id of this machine and the pid namespace of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{_UNKNOWN} {_UNKNOWN}"


def _started(pid: int) -> str | None:
    """Return the start time of a process; None if it does not exist or is hidden."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2]
    except OSError:
        return None
    state, start = fields.split()[_STATE], fields.split()[_START]
    return _ENDED if state in "ZX" else start


def _is_there(pid: int) -> bool:
    """Return True if a process with this pid exists, even where /proc hides it (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
