"""Queries Slurm's version and partitions, and parses the output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from jpsi.plugin import Command, CommandResult, Queue, Site, hookimpl

from ..commands import slurm
from ..options import read_time

_FIELD = re.compile(r"(\S+?)=(\S*)")
_NAME = "PartitionName"
# slurm.conf(5), State: (the partition accepts jobs, the partition starts jobs)
_STATES: Mapping[str, tuple[bool, bool]] = {
    "UP": (True, True),
    "DOWN": (True, False),
    "DRAIN": (False, True),
    "INACTIVE": (False, False),
}
_WORTH_KNOWING = (
    *("AllowAccounts", "AllowQos", "QoS", "DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode"),
    "TRES",
)
_NOTHING = frozenset({"", "ALL", "N/A", "NONE", "UNLIMITED", "(null)"})


@hookimpl
def version(site: Site) -> Command:
    """Return the command that prints Slurm's version, without contacting a daemon."""
    return slurm(site, "scontrol", "--version")


@hookimpl
def queues(site: Site) -> Command:
    """Return the command that prints one line per partition, including hidden ones."""
    return slurm(site, "scontrol", "--all", "--oneliner", "show", "partition")


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the partitions in the output of `scontrol show partition`."""
    lines = (dict(_FIELD.findall(line)) for line in result.checked().stdout.splitlines())
    return [_queue(fields) for fields in lines if fields.get(_NAME)]


def _queue(fields: Mapping[str, str]) -> Queue:
    word = fields.get("State", "")
    is_open, is_started = _STATES.get(word, (None, None))
    return Queue(
        name=fields[_NAME],
        word=word,
        is_open=is_open,
        is_started=is_started,
        is_default=fields.get("Default") == "YES",
        longest=_time(fields.get("MaxTime")),
        usual=_time(fields.get("DefaultTime")),
        most_nodes=_number(fields.get("MaxNodes")),
        nodes=_number(fields.get("TotalNodes")),
        details={
            f"slurm.{name}": fields[name] for name in _WORTH_KNOWING if fields.get(name, "") not in _NOTHING
        },
    )


def _time(text: str | None) -> timedelta | None:
    try:
        return None if text is None else read_time(text)
    except ValueError:
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
