"""Asking Grid Engine for its version and its queues, and reading what it says about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import Command, CommandResult, Queue, hookimpl, parse_duration

from ..commands import gridengine

# The first tells of slots, the others of limits. Where qconf is not for users, there are no limits to tell.
_SCRIPT = 'qstat -g c || exit; for it in $(qconf -sql); do qconf -sq "$it"; done; true'
_SUMMARY = re.compile(
    r"^(?P<name>\S+) +(?:[0-9.]+|-NA-) +(?P<used>\d+) +(?P<reserved>\d+) +(?P<free>\d+) +(?P<total>\d+)"
    r" +(?P<stopped>\d+) +(?P<broken>\d+) *$",
    re.MULTILINE,
)
_SETTING = re.compile(r"^(\w+) +(.*?) *$", re.MULTILINE)
_NAME = "qname"
_ENDLESS = "INFINITY"


@hookimpl
def version() -> Command:
    """The command whose first line is the version; it asks nobody."""
    return gridengine("qstat", "-help")


@hookimpl
def queues() -> Command:
    """The command that prints how many slots each queue has, and how each is configured."""
    return gridengine("/bin/sh", "-c", _SCRIPT)


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """The queues; qstat(1) -g c, and queue_conf(5)."""
    text = result.checked().stdout
    settings = {it[_NAME]: it for it in _configurations(text) if _NAME in it}
    return [_queue(row, settings.get(row["name"], {})) for row in _SUMMARY.finditer(text)]


def _configurations(text: str) -> Iterator[Mapping[str, str]]:
    found: dict[str, str] = {}
    for name, value in _SETTING.findall(text):
        if name == _NAME:
            yield found
            found = {}
        found[name] = value
    yield found


def _queue(row: re.Match[str], settings: Mapping[str, str]) -> Queue:
    total, stopped = int(row["total"]), int(row["stopped"]) + int(row["broken"])
    slots = {name: int(row[name]) for name in ("used", "reserved", "free", "total")}
    return Queue(
        name=row["name"],
        word=f"{row['free']} of {total} slots free",
        # a queue takes jobs whatever the state of its nodes
        is_open=True,
        is_started=None if total == 0 else stopped < total,
        longest=_time(settings.get("h_rt")),
        details={
            **{f"gridengine.slots_{name}": count for name, count in slots.items()},
            **{f"gridengine.{name}": settings[name] for name in ("pe_list", "qtype") if name in settings},
        },
    )


def _time(text: str | None) -> timedelta | None:
    """A limit; what holds on single nodes stands behind a comma."""
    usual = None if text is None else text.partition(",")[0]
    if usual is None or usual.upper() == _ENDLESS:
        return None if usual is None else timedelta(0)
    try:
        return parse_duration(usual)
    except ValueError:
        return None
