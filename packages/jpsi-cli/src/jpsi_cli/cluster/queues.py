"""Implements `jpsi queues`: shows the queues of a batch system, with their limits and states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs

import jpsi

from .. import messages
from ..output import align, format_size

# The mark of the default queue.
_DEFAULT = "*"
_UNKNOWN = "-"


def queues(executor: str | None, *, as_json: bool) -> int:
    """Show the queues and return the exit code."""
    with jpsi.JobExecutor(executor) as opened:
        found = opened.system.queues()
    if as_json:
        messages.show_json([attrs.asdict(it, value_serializer=_serialize) for it in found])
    else:
        messages.show(render_table(found))
    return 0


def render_table(queues: Sequence[jpsi.Queue]) -> str:
    """Return the queues, one per line, below a heading; without columns that are unknown for all of them.

    >>> print(render_table([jpsi.Queue(name="a", native_state="UP", is_default=True)]), end="")
    QUEUE  STATE
    a *    UP
    """
    rows = [_cells(queue) for queue in queues]
    headings = rows[0] if rows else {}
    columns = [name for name in headings if any(row[name] != _UNKNOWN for row in rows)]
    lines = [columns, *([row[name] for name in columns] for row in rows)]
    return align(lines)


_YES_OR_NO = {True: "yes", False: "no", None: _UNKNOWN}


def _cells(queue: jpsi.Queue) -> dict[str, str]:
    """Return the cells of a queue by their headings."""
    cells = {
        "QUEUE": f"{queue.name or _UNKNOWN}{f' {_DEFAULT}' if queue.is_default and queue.name else ''}",
        "TAKES JOBS": _YES_OR_NO[queue.is_open],
        "STARTS JOBS": _YES_OR_NO[queue.is_started],
        "MAX TIME": _format_limit(queue.max_walltime),
        "DEFAULT TIME": _format_limit(queue.default_walltime),
        "NODES": _nodes(queue),
        "CORES": _format_count(queue.node_cores),
        "MEMORY": _UNKNOWN if queue.node_memory is None else format_size(queue.node_memory),
        "WAIT": _format_count(queue.pending),
        "RUN": _format_count(queue.running),
        "STATE": " ".join(queue.native_state.split()) or _UNKNOWN,
    }
    return {heading: messages.printable(text) for heading, text in cells.items()}


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


def _serialize(_: object, __: object, value: Any) -> Any:  # noqa: ANN401  attrs's
    return value.total_seconds() if isinstance(value, timedelta) else value
