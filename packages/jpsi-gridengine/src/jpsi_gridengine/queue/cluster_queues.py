"""Queries Grid Engine's version and cluster queues, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import Command, CommandResult, Queue, hookimpl, parse_duration
from jpsi.plugin.kit import parse_limit

from ..commands import gridengine_command

# The first command prints slots, the others limits. Sites that do not let users run qconf yield no limits.
_SCRIPT = 'qstat -g c || exit; for it in $(qconf -sql); do qconf -sq "$it"; done; true'
_SUMMARY = re.compile(
    r"^(?P<name>\S+) +(?:[0-9.]+|-NA-) +(?P<used>\d+) +(?P<reserved>\d+) +(?P<free>\d+) +(?P<total>\d+)"
    r" +(?P<stopped>\d+) +(?P<broken>\d+) *$",
    re.MULTILINE,
)
_SETTING = re.compile(r"^(\w+) +(.*?) *$", re.MULTILINE)
_QUEUE = re.compile(r"^qname +(.*?) *$", re.MULTILINE)
_UNLIMITED = "INFINITY"


@hookimpl
def version() -> Command:
    """Return the command whose first line is the version; it does not contact qmaster."""
    return gridengine_command("qstat", "-help")


@hookimpl
def queues() -> Command:
    """Return the command that prints the slots and the configuration of each queue."""
    return gridengine_command("/bin/sh", "-c", _SCRIPT)


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the queues in the output; qstat(1) -g c, and queue_conf(5)."""
    text = result.checked().stdout
    # the summary of all queues, and then the name and the settings of each
    _, *parts = _QUEUE.split(text)
    settings = {name: dict(_SETTING.findall(it)) for name, it in zip(parts[::2], parts[1::2], strict=True)}
    return [_parse_queue(row, settings.get(row["name"], {})) for row in _SUMMARY.finditer(text)]


def _parse_queue(row: re.Match[str], settings: Mapping[str, str]) -> Queue:
    total, stopped = int(row["total"]), int(row["stopped"]) + int(row["broken"])
    slots = {name: int(row[name]) for name in ("used", "reserved", "free", "total")}
    return Queue(
        name=row["name"],
        native_state=f"{row['free']} of {total} slots free",
        # a queue accepts jobs whatever the state of its nodes
        is_open=True,
        is_started=None if total == 0 else stopped < total,
        max_walltime=parse_limit(settings.get("h_rt"), _parse_duration),
        details={
            **{f"gridengine.slots_{name}": count for name, count in slots.items()},
            **{f"gridengine.{name}": settings[name] for name in ("pe_list", "qtype") if name in settings},
        },
    )


def _parse_duration(text: str) -> timedelta:
    """Parse a queue's limit; limits of single nodes follow after a comma and are ignored."""
    default = text.partition(",")[0]
    return timedelta(0) if default.upper() == _UNLIMITED else parse_duration(default)
