"""The two ends of the link between a node's supervisor and its worker: start the worker, and notice the end.

The supervisor holds the worker's standard input open. Once that ends, the worker ends its jobs and itself, so
that no job outlives its pilot. What a node has left running all the same, as its log names it, the node
supervisor ends at its own end, or the agent if the supervisor on its machine was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from ..client import process_name
from ..protocol import hostname_of
from .node_log import NodeLog, read_node_log
from .sessions import end_session

# The package may be in a directory of the plugin path, which Python itself does not know.
_RUN = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this package, as `python -m` does."""
    return [sys.executable, "-c", _RUN, str(Path(__file__).parents[2]), module, *arguments]


def watch_supervisor(on_gone: Callable[[], object]) -> None:
    """Have a thread call this function once the supervisor has closed the worker's input, or is gone."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        on_gone()

    # a daemon thread: the process does not wait for it at its end
    threading.Thread(target=watch, daemon=True).start()


def is_on_this_machine(node: str) -> bool:
    """Return True if a node is on this machine."""
    return hostname_of(node) == socket.gethostname()


def end_orphans(path: Path) -> None:
    """End the worker and the runs that have not ended, and record in the log that the node is done.

    Args:
        path: the log of a node that is on this machine.
    """
    content = read_node_log(path)
    # first the worker, as it could start others
    if content.worker and process_name(_pid(content.worker)) == content.worker:
        with contextlib.suppress(ProcessLookupError):
            os.kill(_pid(content.worker), signal.SIGKILL)
    for leader in content.sessions.values():
        if not _is_pid_reused(leader):
            end_session(_pid(leader), 0)
    NodeLog(path).record_over()


def _is_pid_reused(leader: str) -> bool:
    """Return True if the pid of a session's leader is that of another process now.

    A leader that is gone may have left other processes of its session; while they live, no process gets its
    pid.
    """
    now = process_name(_pid(leader))
    return now != leader and not now.endswith(".")


def _pid(name: str) -> int:
    return int(name.partition(".")[0])
