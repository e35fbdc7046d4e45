"""The supervisor on each node of a pilot: starts the engine's worker, and ends jobs that outlive it.

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

from .node_log import NodeLog, log_path
from .runs import PILOT_DELAY
from .supervision import end_orphans, python_command

# The time that the worker has to end its jobs and itself, in seconds.
_STOP_TIMEOUT = PILOT_DELAY + 1.5


class _PilotEndedError(Exception):
    """The batch system ends the pilot."""


def main(arguments: list[str]) -> int:
    """Supervise a worker until it has ended, or a signal ends the pilot."""
    folder, cores, module, *engine_arguments = arguments
    pilot = Path(folder).name
    node = f"{pilot}/{socket.gethostname()}.{os.getpid()}"
    log = NodeLog(log_path(Path(folder), node))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _handle_signal)
    code = 1
    with (
        subprocess.Popen(  # noqa: S603  a program of our own
            # the worker inherits open files, as a launcher may have passed one by which nodes find each other
            python_command(module, *engine_arguments, folder, cores, node),
            stdin=subprocess.PIPE,
            close_fds=False,
        ) as worker,
        contextlib.ExitStack() as cleanup,
    ):
        cleanup.callback(end_orphans, log.path)
        try:
            log.record_worker(worker.pid)
            code = worker.wait()
        except _PilotEndedError:
            _stop_worker(worker)
    return code


def _stop_worker(worker: subprocess.Popen[bytes]) -> None:
    """Close the worker's input, upon which it ends its jobs and itself; kill it if that takes too long."""
    assert worker.stdin is not None  # noqa: S101  it is a pipe
    with contextlib.suppress(OSError):
        worker.stdin.close()
    try:
        worker.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _handle_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise _PilotEndedError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
