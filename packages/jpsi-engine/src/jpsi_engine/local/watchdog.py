"""Ends a job of this machine at its time limit, even if no client is left that follows it.

The local engine starts this file as a program of its own beside each job that has a limit. It imports the
standard library alone, so that it starts fast, and it ends when the job's runner ends. A client that follows
the job acts first; the program does what is left to do.

    watchdog.py SECONDS DELAY STOP_FILE PID
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

#: The descriptor that becomes readable when the runner ends; the engine opens it.
RUNNER_FD = 9
#: The seconds for which a client may act first.
CLIENT_SECONDS = 1.0
_POLL_SECONDS = 0.1
_TIMEOUT = "timeout"
# proc(5): the fields of /proc/PID/stat after the name, which may contain blanks
_STATE, _SESSION = 0, 3


def main(seconds: float, delay: float, stop_file: str, pid: int) -> None:
    """Wait until the runner ends; if it runs longer than its limit, end its session."""
    if _has_ended(seconds + CLIENT_SECONDS):
        return
    if _record_stop(stop_file):
        # the runner first, so that it knows of the signal before it sees its child end
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(RUNNER_FD, signal.SIGTERM)
        for member in _session(pid):
            _send(member, signal.SIGTERM)
    # otherwise another process is ending the job, and may have died
    deadline = time.monotonic() + delay
    while not _has_ended(_POLL_SECONDS) or any(_session(pid)):
        if time.monotonic() > deadline:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(RUNNER_FD, signal.SIGKILL)
            # the kernel gives no process the pid of a session that has members
            for member in _session(pid):
                _send(member, signal.SIGKILL)
            return
        time.sleep(_POLL_SECONDS)


def _has_ended(seconds: float) -> bool:
    """Wait until the runner has ended, but no longer than this; return True if it has."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(RUNNER_FD, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        # poll(2) takes milliseconds in an int
        if poll.poll(min(max(0.0, left), 86400.0) * 1000):
            return True
        if left <= 0:
            return False


def _record_stop(path: str) -> bool:
    """Record that the job exceeded its limit; return False if a process has asked for its end already."""
    content = {"why": _TIMEOUT, "time": datetime.now(UTC).isoformat()}
    draft = f"{path}.{os.getpid()}"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as file:
            json.dump(content, file)
        # readers see the whole file or none
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:
        # the disk is full: the limit holds nevertheless
        return True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108  text, as in the spool
    return True


def _session(leader: int) -> Iterator[int]:
    """Yield the members of a session, without its leader and zombies."""
    for name in os.listdir("/proc"):  # noqa: PTH208  names only
        if name.isdecimal() and int(name) != leader:
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
                if int(fields[_SESSION]) == leader and fields[_STATE] not in "ZX":
                    yield int(name)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
