"""What a pilot runs on each of its nodes: it starts the engine's worker, and no job outlives that.

python -m jpsi_pilot.node.node_supervisor PILOT_FOLDER CORES MODULE ARGUMENT...
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .command_line import python_command
from .node_log import NodeLog, log_of
from .orphans import end_orphans
from .runs import PILOT_DELAY

# The worker has that long to end its jobs, and then to go.
_PATIENCE = PILOT_DELAY + 1.5


class _ToldError(Exception):
    """The pilot is being ended."""


def main(arguments: list[str]) -> int:
    """Watch over a worker until it has ended, or the pilot is told to."""
    folder, cores, module, *rest = arguments
    pilot = Path(folder).name
    place = f"{pilot}/{socket.gethostname()}.{os.getpid()}"
    log = NodeLog(log_of(Path(folder), place))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _told)
    code = 1
    with (
        subprocess.Popen(  # noqa: S603  a program of our own
            # open files are passed on, as a launcher may have given one by which nodes find each other
            python_command(module, *rest, folder, cores, place),
            stdin=subprocess.PIPE,
            close_fds=False,
        ) as worker,
        contextlib.ExitStack() as over,
    ):
        over.callback(end_orphans, log.path)
        try:
            log.worker(worker.pid)
            code = worker.wait()
        except _ToldError:
            _end(worker)
    return code


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Have a worker end its jobs and go; it goes when its input ends."""
    assert worker.stdin is not None  # noqa: S101  it is a pipe
    with contextlib.suppress(OSError):
        worker.stdin.close()
    try:
        worker.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _told(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise _ToldError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
