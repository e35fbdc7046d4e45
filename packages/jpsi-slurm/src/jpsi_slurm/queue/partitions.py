"""Queries Slurm's version and partitions, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Queue, Site, hookimpl
from jpsi.plugin.kit import parse_count, parse_limit

from ..commands import slurm_command
from ..custom_options import parse_time

_FIELD = re.compile(r"(\S+?)=(\S*)")
_NAME = "PartitionName"
# slurm.conf(5), State: (the partition accepts jobs, the partition starts jobs)
_STATES: Mapping[str, tuple[bool, bool]] = {
    "UP": (True, True),
    "DOWN": (True, False),
    "DRAIN": (False, True),
    "INACTIVE": (False, False),
}
_DETAIL_FIELDS = (
    *("AllowAccounts", "AllowQos", "QoS", "DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode"),
    "TRES",
)
_NO_VALUES = frozenset({"", "ALL", "N/A", "NONE", "UNLIMITED", "(null)"})


@hookimpl
def version(site: Site) -> Command:
    """Return the command that prints Slurm's version, without contacting a daemon."""
    return slurm_command(site, "scontrol", "--version")


@hookimpl
def queues(site: Site) -> Command:
    """Return the command that prints one line per partition, including hidden ones."""
    return slurm_command(site, "scontrol", "--all", "--oneliner", "show", "partition")


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the partitions in the output of `scontrol show partition`."""
    lines = (dict(_FIELD.findall(line)) for line in result.checked().stdout.splitlines())
    return [_parse_partition(fields) for fields in lines if fields.get(_NAME)]


def _parse_partition(fields: Mapping[str, str]) -> Queue:
    native_state = fields.get("State", "")
    is_open, is_started = _STATES.get(native_state, (None, None))
    return Queue(
        name=fields[_NAME],
        native_state=native_state,
        is_open=is_open,
        is_started=is_started,
        is_default=fields.get("Default") == "YES",
        max_walltime=parse_limit(fields.get("MaxTime"), parse_time),
        default_walltime=parse_limit(fields.get("DefaultTime"), parse_time),
        max_nodes=parse_count(fields.get("MaxNodes")),
        nodes=parse_count(fields.get("TotalNodes")),
        details={f"slurm.{it}": fields[it] for it in _DETAIL_FIELDS if fields.get(it, "") not in _NO_VALUES},
    )
