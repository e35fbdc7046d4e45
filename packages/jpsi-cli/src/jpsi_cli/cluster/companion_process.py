"""Runs a helper beside a program, and cleans up when the program ends.

`jpsi fake` uses it to keep the fake batch system up while the user's program runs.
"""

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

# The seconds between two checks if the process has ended; only for systems without pidfds.
_INTERVAL_SECONDS = 0.2

#: Returns a context manager; the companion enters it at the start, and exits it once the original process
#: has ended. It yields environment variables for the program.
Work = Callable[[], AbstractContextManager[Mapping[str, str]]]


def start_companion_process(work: Work) -> dict[str, str]:
    """Start a companion process; return the variables that its work yields.

    Like `ssh-agent COMMAND`: the caller then replaces itself by the program (exec), with the same process id.
    So no process in between has to pass on signals, the terminal or an exit code. Call it while there is only
    one thread.

    Raises:
        OSError: `work` raised an OSError, or the companion ended at once.
    """
    reader, writer = os.pipe()
    original_pid = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            # fork twice: the program may wait for all its children, and must not wait for this one
            if os.fork() == 0:
                _work_until_process_ends(original_pid, writer, work)
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


def _work_until_process_ends(pid: int, writer: int, work: Work) -> None:
    """Do the work until the process `pid` has ended."""
    # A copy of a descriptor here would keep the program's pipes open and its locks held.
    for descriptor in list(Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError):
            if int(descriptor.name) not in {0, 1, 2, writer}:
                os.close(int(descriptor.name))
    # Ignore SIGTERM: if all processes get it, clean up only after the program has ended.
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
        # The BrokenPipeError of close() ends the companion: the process `pid` was killed before it read the
        # pipe, and its id may belong to another process by now, for which it must not wait.
        pipe.close()
        _wait_for_exit(pid, pidfd)


def _detach() -> None:
    """Close the terminal or pipes of the original process, and leave its directory."""
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
            time.sleep(_INTERVAL_SECONDS)
