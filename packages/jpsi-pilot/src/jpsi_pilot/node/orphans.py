"""Ends the processes that a node of a pilot has left running, as its log names them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

from ..client import process
from .node_log import NodeLog, story
from .sessions import end_session


def is_here(place: str) -> bool:
    """Return True if a place is on this machine."""
    return place.partition("/")[2].rpartition(".")[0] == socket.gethostname()


def end_orphans(path: Path) -> None:
    """End the worker and the runs that have not ended, and record in the log that the node is done.

    Args:
        path: the log of a place that is on this machine.
    """
    told = story(path)
    # first the worker, as it could start others
    if told.worker and process(_pid(told.worker)) == told.worker:
        with contextlib.suppress(ProcessLookupError):
            os.kill(_pid(told.worker), signal.SIGKILL)
    for leader in told.sessions.values():
        if not _is_anothers(leader):
            end_session(_pid(leader), 0)
    NodeLog(path).over()


def _is_anothers(leader: str) -> bool:
    """Return True if the pid of a session's leader is that of another process now.

    A leader that is gone may have left other processes of its session; while they live, no process gets its
    pid.
    """
    now = process(_pid(leader))
    return now != leader and not now.endswith(".")


def _pid(name: str) -> int:
    return int(name.partition(".")[0])
