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
import time
from collections.abc import Callable
from pathlib import Path

from ..client import process_name
from ..protocol import JOB_VARIABLE, LOG_VARIABLE, STARTER_VARIABLE, hostname_of
from .node_log import NodeLog, read_node_log
from .sessions import end_marked, end_session, read_stat

# The time that the process that starts programs may take to end after its worker, and the interval at which
# to look for that, in seconds.
_STARTER_TIMEOUT, _POLL_INTERVAL = 3.0, 0.01

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
    _end_starter(content.starter, path)
    for leader in content.sessions.values():
        if not _is_pid_reused(leader):
            end_session(_pid(leader), 0)
    for native_id in content.unrecorded:
        end_marked({JOB_VARIABLE: native_id, LOG_VARIABLE: str(path)})
    NodeLog(path).record_over()


def _end_starter(name: str, path: Path) -> None:
    """Let the process that starts programs leave the markers of ends, and see that it is gone.

    Once its worker is gone, it kills the programs that have not ended, and ends. Until then no program may
    get a signal from here: it would take the end for the program's own. So it alone is killed first if it
    does not end in time. A program of which it waits for the
    start, as a file system does not answer, has the variable of that process until it is executed.

    Args:
        name: that process; empty if the log names none.
        path: the log of the node.
    """
    deadline = time.monotonic() + _STARTER_TIMEOUT
    while name and _is_alive(name):
        if time.monotonic() >= deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(_pid(name), signal.SIGKILL)
            break
        time.sleep(_POLL_INTERVAL)
    end_marked({STARTER_VARIABLE: str(path)})


def _is_alive(name: str) -> bool:
    return process_name(_pid(name)) == name and read_stat(_pid(name)) is not None


def _is_pid_reused(leader: str) -> bool:
    """Return True if the pid of a session's leader is that of another process now.

    A leader that is gone may have left other processes of its session; while they live, no process gets its
    pid.
    """
    now = process_name(_pid(leader))
    return now != leader and not now.endswith(".")


def _pid(name: str) -> int:
    return int(name.partition(".")[0])
