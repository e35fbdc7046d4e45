"""A process beside this one that stays for as long as this one, whatever program this one becomes."""

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

# How often it is looked where there are no pidfds, in seconds.
_INTERVAL = 0.2

#: What such a process does: it is entered there, and left once this process has ended.
Work = Callable[[], AbstractContextManager[Mapping[str, str]]]


def accompany(work: Work) -> dict[str, str]:
    """Start such a process; returns what its work had to say when it was entered.

    As ssh-agent(1) does it: this process stays the one that its caller knows, so that nobody has to pass
    signals, the terminal or an exit code on once it has become another program. To be called while there is
    one thread.

    Raises:
        OSError: the work could not be begun.
    """
    reader, writer = os.pipe()
    own = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setsid()
            # not a child of the program's, which may wait for all that it has
            if os.fork() == 0:
                _stay(own, writer, work)
        except Exception:  # noqa: BLE001  the outermost fence of this process
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answer = json.loads(pipe.read() or '{"failed": "it ended at once"}')
    if "failed" in answer:
        raise OSError(answer["failed"])
    variables: dict[str, str] = answer["entered"]
    return variables


def _stay(pid: int, writer: int, work: Work) -> None:
    """Do the work until the process `pid` has ended."""
    # What holds other descriptors open would keep pipes and locks of the program's from their ends.
    for open_one in list(Path("/dev/fd").iterdir()):
        with contextlib.suppress(OSError):
            if int(open_one.name) not in {0, 1, 2, writer}:
                os.close(int(open_one.name))
    # Who ends everything at once ends the program, too; then there is something to be put away.
    signal.signal(signal.SIGTERM, lambda *_: None)
    pidfd = _pidfd(pid)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe, contextlib.ExitStack() as stack:
        try:
            entered = stack.enter_context(work())
        except OSError as e:
            json.dump({"failed": str(e)}, pipe)
            return
        _let_go()
        json.dump({"entered": dict(entered)}, pipe)
        # If that fails, nobody reads it any more: the process was killed, and its number may be another's.
        pipe.close()
        _wait(pid, pidfd)


def _let_go() -> None:
    """Hold neither the streams nor the directory of whoever started this."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.chdir("/")


def _pidfd(pid: int) -> int | None:
    """A descriptor that tells of the end of a process; None where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wait(pid: int, pidfd: int | None) -> None:
    if pidfd is not None:
        select.select([pidfd], [], [])
        return
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(_INTERVAL)
