"""Ends all processes of a session: those that a job has started, whatever became of the one that leads it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

_TICK = 0.02


class Member(NamedTuple):
    """A process of a session."""

    pid: int
    parent: int


def members(session: int) -> list[Member]:
    """The processes of a session that have not ended; without /proc, those of its leader's group."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  numbers, not paths
    except OSError:
        names = []
    if "self" not in names:
        return [Member(-session, 0)] if _group_is_there(session) else []
    found = (_look(int(name)) for name in names if name.isdigit())
    return [Member(pid, parent) for pid, parent, it in filter(None, found) if it == session]


def has_members(session: int) -> bool:
    """Whether there may be processes of a session; it costs nothing, and overlooks groups of their own."""
    return _group_is_there(session)


def end_session(
    session: int,
    delay: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """End a session: TERM, and KILL after the delay; returns when it is empty.

    The leader is told first, so that it knows of the signal before it sees a child end. Its children hear of
    it from the leader, which is jpsi's runner.
    """
    _send(session, signal.SIGTERM)
    for pid, parent in members(session):
        if session not in {pid, parent}:
            _send(pid, signal.SIGTERM)
    deadline = now() + delay
    while left := members(session):
        if now() >= deadline:
            for pid, _ in left:
                _send(pid, signal.SIGKILL)
        sleep(_TICK)


def end_marked(variables: Mapping[str, str]) -> None:
    """Kill all processes of this user that were started with all of these variables; none without /proc."""
    marks = {os.fsencode(f"{name}={value}") for name, value in variables.items()}
    for path in Path("/proc").glob("[0-9]*/environ"):
        # of another user, or gone
        with contextlib.suppress(OSError):
            if marks <= set(path.read_bytes().split(b"\0")):
                _send(int(path.parent.name), signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _group_is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS says that of one that has ended and was not waited for
        return False
    return True


def _look(pid: int) -> tuple[int, int, int] | None:
    """The pid, parent and session of a process that lives; None if there is no such."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  a third of the time, for every process
            state, parent, _, session, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else (pid, int(parent), int(session))
