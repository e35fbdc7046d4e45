"""A companion process, which lives as long as this one, whatever program this one becomes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

# The interval of checks where the system has no pidfds, in seconds.
_INTERVAL = 0.2

#: The work of a companion process: a context that it enters, and leaves once this process has ended.
Work = Callable[[], AbstractContextManager[Mapping[str, str]]]


def start_companion_process(work: Work) -> dict[str, str]:
    """Start a companion process; return the variables that its work yields.

    As with ssh-agent(1), this process keeps its id and becomes the program itself later, so that no process
    in between has to pass on signals, the terminal or an exit code. Call it while there is only one thread.

    Raises:
        OSError: the work could not be entered.
    """
    reader, writer = os.pipe()
    own = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            # not a child of the program, which may wait for all of its children
            if os.fork() == 0:
                _run_until_exit(own, writer, work)
        except Exception:  # noqa: BLE001  the outermost fence of this process
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        reply = json.loads(pipe.read() or '{"failed": "it ended immediately"}')
    if "failed" in reply:
        raise OSError(reply["failed"])
    variables: dict[str, str] = reply["entered"]
    return variables


def _run_until_exit(pid: int, writer: int, work: Work) -> None:
    """Do the work until the process `pid` has ended."""
    # Other open descriptors would keep pipes and locks of the program from being closed.
    for descriptor in list(Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError):
            if int(descriptor.name) not in {0, 1, 2, writer}:
                os.close(int(descriptor.name))
    # A SIGTERM to all processes ends the program as well; the cleanup comes after that.
    signal.signal(signal.SIGTERM, lambda *_: None)
    pidfd = _pidfd(pid)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe, contextlib.ExitStack() as stack:
        try:
            entered = stack.enter_context(work())
        except OSError as e:
            json.dump({"failed": str(e)}, pipe)
            return
        _detach()
        json.dump({"entered": dict(entered)}, pipe)
        # If that fails, no process reads the pipe: the process `pid` was killed, and its id may be reused.
        pipe.close()
        _wait_for_exit(pid, pidfd)


def _detach() -> None:
    """Release the streams and the directory of the process that started this one."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.chdir("/")


def _pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when a process ends; None if the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wait_for_exit(pid: int, pidfd: int | None) -> None:
    if pidfd is not None:
        select.select([pidfd], [], [])
        return
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(_INTERVAL)
