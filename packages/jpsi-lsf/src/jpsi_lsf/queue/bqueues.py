"""Queries LSF's version and queues, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise

from jpsi.plugin import Command, CommandResult, Queue, hookimpl
from jpsi.plugin.kit import parse_count

from ..commands import lsf_command

_QUEUE = re.compile(r"^QUEUE: *(\S+)", re.MULTILINE)
_HEADING = "PRIO"
_IS_DEFAULT = "This is the default queue"
# bqueues of LSF 10.1, "Resource limits": limits before any heading are maximum limits
_MAXIMUM, _DEFAULT = "MAXIMUM LIMITS:", "DEFAULT LIMITS:"
_RUNLIMIT = "RUNLIMIT"
_MINUTES = re.compile(r"([0-9.]+) +min")


@hookimpl
def version() -> Command:
    """Return the command that prints LSF's version, without contacting a daemon."""
    return lsf_command("bjobs", "-V")


@hookimpl
def queues() -> Command:
    """Return the command that prints all properties of the queues."""
    return lsf_command("bqueues", "-l")


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the queues in the output of `bqueues -l`; bqueues of LSF 10.1, "Long output"."""
    text = result.checked().stdout
    # the text before the first queue, and then the name and the properties of each
    _, *parts = _QUEUE.split(text)
    if not parts:
        raise result.no_answer
    return [_parse_queue(*it) for it in zip(parts[::2], parts[1::2], strict=True)]


def _parse_queue(name: str, text: str) -> Queue:
    lines = text.splitlines()
    columns = _parse_columns(lines)
    native_state = columns.get("STATUS", "")
    open_state, _, active_state = native_state.partition(":")
    limits = dict(_parse_run_limits(lines))
    return Queue(
        name=name,
        native_state=native_state,
        is_open={"Open": True, "Closed": False}.get(open_state),
        is_started=None if not active_state else active_state == "Active",
        is_default=_IS_DEFAULT in text,
        max_walltime=limits.get(_MAXIMUM),
        default_walltime=limits.get(_DEFAULT),
        pending=parse_count(columns.get("PEND")),
        running=parse_count(columns.get("RUN")),
    )


def _parse_columns(lines: Sequence[str]) -> Mapping[str, str]:
    """Return the single row of the table of statistics, by its headings."""
    for heading, row in pairwise(lines):
        names, values = heading.split(), row.split()
        if names[:1] == [_HEADING] and len(names) == len(values):
            return dict(zip(names, values, strict=True))
    return {}


def _parse_run_limits(lines: Sequence[str]) -> Iterator[tuple[str, timedelta]]:
    kind = _MAXIMUM
    for heading, row in pairwise(lines):
        if heading.strip() in (_MAXIMUM, _DEFAULT):
            kind = heading.strip()
        column = heading.find(_RUNLIMIT)
        minutes = _MINUTES.match(row[column:]) if column >= 0 else None
        if minutes is not None:
            yield kind, timedelta(minutes=float(minutes[1]))
