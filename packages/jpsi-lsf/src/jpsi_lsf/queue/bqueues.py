"""Queries LSF's version and queues, and parses the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise

from jpsi.plugin import Command, CommandResult, Queue, hookimpl

from ..commands import lsf

_QUEUE = re.compile(r"^QUEUE: *(\S+)", re.MULTILINE)
_HEADING = "PRIO"
_IS_DEFAULT = "This is the default queue"
# bqueues of LSF 10.1, "Resource limits": limits before any heading are maximum limits
_LARGEST, _USUAL = "MAXIMUM LIMITS:", "DEFAULT LIMITS:"
_RUNLIMIT = "RUNLIMIT"
_MINUTES = re.compile(r"([0-9.]+) +min")


@hookimpl
def version() -> Command:
    """Return the command that prints LSF's version, without contacting a daemon."""
    return lsf("bjobs", "-V")


@hookimpl
def queues() -> Command:
    """Return the command that prints all properties of the queues."""
    return lsf("bqueues", "-l")


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the queues in the output of `bqueues -l`; bqueues of LSF 10.1, "Long output"."""
    text = result.checked().stdout
    starts = list(_QUEUE.finditer(text))
    if not starts:
        raise result.no_answer
    ends = [*(it.start() for it in starts[1:]), len(text)]
    return [_queue(it[1], text[it.start() : end]) for it, end in zip(starts, ends, strict=True)]


def _queue(name: str, text: str) -> Queue:
    lines = text.splitlines()
    columns = _columns(lines)
    word = columns.get("STATUS", "")
    taking, _, starting = word.partition(":")
    limits = dict(_run_limits(lines))
    return Queue(
        name=name,
        word=word,
        is_open={"Open": True, "Closed": False}.get(taking),
        is_started=None if not starting else starting == "Active",
        is_default=_IS_DEFAULT in text,
        longest=limits.get(_LARGEST),
        usual=limits.get(_USUAL),
        pending=_number(columns.get("PEND")),
        running=_number(columns.get("RUN")),
    )


def _columns(lines: Sequence[str]) -> Mapping[str, str]:
    """Return the single row of the table of statistics, by its headings."""
    for heading, row in pairwise(lines):
        names, values = heading.split(), row.split()
        if names[:1] == [_HEADING] and len(names) == len(values):
            return dict(zip(names, values, strict=True))
    return {}


def _run_limits(lines: Sequence[str]) -> Iterator[tuple[str, timedelta]]:
    kind = _LARGEST
    for heading, row in pairwise(lines):
        if heading.strip() in (_LARGEST, _USUAL):
            kind = heading.strip()
        place = heading.find(_RUNLIMIT)
        minutes = _MINUTES.match(row[place:]) if place >= 0 else None
        if minutes is not None:
            yield kind, timedelta(minutes=float(minutes[1]))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
