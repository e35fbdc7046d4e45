"""`jpsi queues`: the queues of a batch system, with their limits and states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import jpsi

from .. import messages
from ..error_boundary import run_reporting_errors

_DEFAULT = "*"
_UNKNOWN = "-"
_GAP = "  "


def queues(executor: str | None, *, as_json: bool) -> int:
    """Show the queues and return the exit code."""

    def command() -> int:
        with jpsi.JobExecutor(executor) as opened:
            found = opened.system.queues()
        messages.show(_json(found) if as_json else render_table(found))
        return 0

    return run_reporting_errors(command)


def render_table(queues: Sequence[jpsi.Queue]) -> str:
    """Return the queues, one per line, below a heading; without columns that are unknown for all of them.

    >>> print(render_table([jpsi.Queue(name="a", word="UP", is_default=True)]), end="")
    QUEUE  STATE
    a *    UP
    """
    rows = [_cells(queue) for queue in queues]
    columns = [name for name in _HEADINGS if any(row[name] != _UNKNOWN for row in rows)]
    lines = [columns, *([row[name] for name in columns] for row in rows)]
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (_GAP.join(f"{cell:{size}}" for cell, size in zip(line, sizes, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


_HEADINGS = (
    "QUEUE",
    "TAKES JOBS",
    "STARTS JOBS",
    "MAX TIME",
    "DEFAULT TIME",
    "NODES",
    "WAIT",
    "RUN",
    "STATE",
)


def _cells(queue: jpsi.Queue) -> dict[str, str]:
    cells = (
        f"{queue.name or _UNKNOWN}{f' {_DEFAULT}' if queue.is_default and queue.name else ''}",
        _yes_or_no(queue.is_open),
        _yes_or_no(queue.is_started),
        _format_limit(queue.max_walltime),
        _format_limit(queue.default_walltime),
        _nodes(queue),
        _format_count(queue.pending),
        _format_count(queue.running),
        " ".join(queue.word.split()) or _UNKNOWN,
    )
    return dict(zip(_HEADINGS, map(messages.printable, cells), strict=True))


def _yes_or_no(value: bool | None) -> str:  # noqa: FBT001  what is said of a queue
    return {True: "yes", False: "no", None: _UNKNOWN}[value]


def _format_limit(limit: timedelta | None) -> str:
    if limit is None:
        return _UNKNOWN
    return str(limit) if limit else "no limit"


def _format_count(count: int | None) -> str:
    return _UNKNOWN if count is None else str(count)


def _nodes(queue: jpsi.Queue) -> str:
    """Return the number of nodes that a job may have, and of all nodes, as far as they are known."""
    if queue.max_nodes is None or queue.nodes is None:
        return _format_count(queue.nodes if queue.max_nodes is None else queue.max_nodes)
    return f"{queue.max_nodes} of {queue.nodes}"


def _json(queues: Sequence[jpsi.Queue]) -> str:
    content = [
        {
            "name": it.name,
            "word": it.word,
            "is_open": it.is_open,
            "is_started": it.is_started,
            "is_default": it.is_default,
            "max_walltime": None if it.max_walltime is None else it.max_walltime.total_seconds(),
            "default_walltime": None if it.default_walltime is None else it.default_walltime.total_seconds(),
            "max_nodes": it.max_nodes,
            "nodes": it.nodes,
            "pending": it.pending,
            "running": it.running,
            "details": dict(it.details),
        }
        for it in queues
    ]
    return json.dumps(content, indent=2) + "\n"
