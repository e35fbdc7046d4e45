"""Ends the processes that a node of a pilot has left running, as its log names them.

The node supervisor calls it at its end; the agent calls it for a node on its own machine whose supervisor was
killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

from ..client import process_name
from ..protocol import hostname_of
from .node_log import NodeLog, read_node_log
from .sessions import end_session


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
