"""Ends a job of this machine at its time limit, even if no client is left that follows it.

The local engine starts this file as a program of its own beside each job that has a limit. It imports the
standard library alone, so that it starts fast, and it ends when the job's runner ends. A client that follows
the job acts first; the program does what is left to do.

    watchdog.py SECONDS DELAY STOP_FILE PID START
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from datetime import UTC, datetime

#: The descriptor that becomes readable when the runner ends; the engine opens it.
RUNNER_FD = 9
#: The seconds for which a client may act first.
CLIENT_SECONDS = 1.0
_POLL_SECONDS = 0.1
_TIMEOUT = "timeout"
# proc(5): the fields of /proc/PID/stat after the name, which may contain blanks
_STATE, _SESSION, _START = 0, 3, 19
# the client counts the time in which the machine sleeps, too
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# poll(2) does not count it
_LONGEST_POLL_SECONDS = 60.0


def main(seconds: float, delay: float, stop_file: str, pid: int, start: int) -> None:
    """Wait until the runner ends; if it runs longer than its limit, end its session."""
    if _has_ended(seconds + CLIENT_SECONDS):
        return
    is_first = _record_stop(stop_file)
    members = _members(pid)
    # the file may have taken long: the members are the runner's for sure only while it lives
    if _has_ended(0.0):
        return
    if is_first:
        _signal(members, signal.SIGTERM)
    # otherwise another process is ending the job, and may have died
    deadline = time.monotonic() + delay
    while True:
        is_over = _has_ended(_POLL_SECONDS)
        members = _left(pid, start, members)
        if is_over and not members:
            return
        if time.monotonic() > deadline:
            _signal(members, signal.SIGKILL)
            return
        time.sleep(_POLL_SECONDS)


def _has_ended(seconds: float) -> bool:
    """Wait until the runner has ended, but no longer than this; return True if it has."""
    deadline = time.clock_gettime(_CLOCK) + seconds
    poll = select.poll()
    poll.register(RUNNER_FD, select.POLLIN)
    while True:
        left = deadline - time.clock_gettime(_CLOCK)
        if poll.poll(min(max(0.0, left), _LONGEST_POLL_SECONDS) * 1000):
            return True
        if left <= 0:
            return False


def _record_stop(path: str) -> bool:
    """Record that the job exceeded its limit; return False if a process has requested its end already."""
    content = {"why": _TIMEOUT, "time": datetime.now(UTC).isoformat()}
    draft = f"{path}.{os.getpid()}"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            json.dump(content, file)
        # readers see the whole file or none
        os.link(draft, path)
    except FileExistsError:
        # NFS may send a request again that has succeeded
        with contextlib.suppress(OSError):
            return os.stat(draft).st_nlink > 1  # noqa: PTH116
        return False
    except OSError:
        # the disk is full: the limit holds nevertheless
        return True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108  text, as in the spool
    return True


def _left(leader: int, start: int, before: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the members of the session that the runner leads, or led; `before` are those known so far.

    The kernel gives no process the pid of a session that has members. Once the runner is gone, a session of
    this number is another one, unless a known member is still in it.
    """
    found = _members(leader)
    return found if _start_of(leader) == start or found & before else set()


def _start_of(pid: int) -> int | None:
    fields = _read_stat(pid)
    return int(fields[_START]) if fields else None


def _members(leader: int) -> set[tuple[int, int]]:
    """Return the pids and start times of the members of a session, without its leader and zombies."""
    found = set()
    for name in os.listdir("/proc"):  # noqa: PTH208  names only
        if name.isdecimal() and int(name) != leader:
            fields = _read_stat(int(name))
            if fields and int(fields[_SESSION]) == leader and fields[_STATE] not in b"ZX":
                found.add((int(name), int(fields[_START])))
    return found


def _read_stat(pid: int) -> list[bytes]:
    """Return the fields after the name, which the kernel may cut in the middle of a character."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _signal(members: set[tuple[int, int]], number: signal.Signals) -> None:
    """Signal the runner first, so that it knows of the signal before it sees its child end."""
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(RUNNER_FD, number)
    for pid, _ in members:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
