"""Queries Slurm's version and partitions, and parses the output.

`JobExecutor.system` and `jpsi queues` use it; job monitoring does not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Queue, Site, hookimpl, line
from jpsi.plugin.kit import parse_count, parse_limit

from ..commands import slurm_command
from ..custom_options import parse_time

_FIELD = re.compile(r"(\S+?)=(\S*)")
_NAME = "PartitionName"
# sinfo(1), --format: the partition, the CPUs and megabytes of one of its nodes, and the number of such nodes
_NODE_FIELDS = "%R|%c|%m|%D"
_NODE = re.compile(r"^(.+)\|([0-9]+)\+?\|([0-9]+)\+?\|([0-9]+)$", re.MULTILINE)
_MEBIBYTE = 2**20
# slurm.conf(5), State: (the partition accepts jobs, the partition starts jobs)
_STATES: Mapping[str, tuple[bool, bool]] = {
    "UP": (True, True),
    "DOWN": (True, False),
    "DRAIN": (False, True),
    "INACTIVE": (False, False),
}
_DETAIL_FIELDS = (
    *("AllowAccounts", "AllowGroups", "AllowQos", "QoS", "DefMemPerCPU", "DefMemPerNode"),
    *("MaxMemPerCPU", "MaxMemPerNode", "TRES"),
)
# slurm.conf(5): the accounts and groups that may use the partition
_RESTRICTIONS = ("AllowAccounts", "AllowGroups")
_NO_VALUES = frozenset({"", "ALL", "N/A", "NONE", "UNLIMITED", "(null)"})


@hookimpl
def version(site: Site) -> Command:
    """Return the command that prints Slurm's version, without contacting a daemon."""
    return slurm_command(site, "scontrol", "--version")


@hookimpl
def queues(site: Site) -> Command:
    """Return the command that prints one line per partition, including hidden ones, and per kind of node.

    Partitions alone are an answer, too.
    """
    partitions = slurm_command(site, "scontrol", "--all", "--oneliner", "show", "partition")
    nodes = slurm_command(site, "sinfo", "--all", "--noheader", "--exact", f"--format={_NODE_FIELDS}")
    script = f"{line(*partitions.argv)} || exit; {line(*nodes.argv)}; true"
    return attrs.evolve(partitions, argv=["/bin/sh", "-c", script])


@hookimpl
def parse_queues(result: CommandResult) -> Sequence[Queue]:
    """Return the partitions in the output of `scontrol show partition`, with the largest nodes of each."""
    text = result.checked().stdout
    sizes: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for name, cpus, megabytes, count in _NODE.findall(text):
        sizes[name].append((int(cpus), int(megabytes), int(count)))
    partitions = (dict(_FIELD.findall(it)) for it in text.splitlines())
    return [_parse_partition(it, sizes[it[_NAME]]) for it in partitions if it.get(_NAME)]


def _parse_partition(fields: Mapping[str, str], sizes: Sequence[tuple[int, int, int]]) -> Queue:
    """Return a partition with these fields, which has nodes with so many CPUs and megabytes, and so often."""
    total = parse_count(fields.get("TotalNodes"))
    if total is None or sum(it[2] for it in sizes) < total:
        # sinfo does not list nodes of a cloud that are powered down, and they may be larger
        sizes = ()
    cores = _smallest(max((it[0] for it in sizes), default=None), fields.get("MaxCPUsPerNode"))
    megabytes = _smallest(max((it[1] for it in sizes), default=None), fields.get("MaxMemPerNode"))
    native_state = fields.get("State", "")
    is_open, is_started = _STATES.get(native_state, (None, None))
    is_restricted = any(fields.get(it, "") not in _NO_VALUES for it in _RESTRICTIONS)
    return Queue(
        name=fields[_NAME],
        native_state=native_state,
        is_open=is_open and fields.get("RootOnly") != "YES",
        is_started=is_started,
        is_default=fields.get("Default") == "YES",
        max_walltime=parse_limit(fields.get("MaxTime"), parse_time),
        default_walltime=parse_limit(fields.get("DefaultTime"), parse_time),
        max_nodes=parse_count(fields.get("MaxNodes")),
        nodes=total,
        node_cores=cores,
        node_memory=None if megabytes is None else megabytes * _MEBIBYTE,
        min_nodes=parse_count(fields.get("MinNodes")) or None,
        is_restricted=is_restricted or fields.get("Hidden") == "YES",
        # Slurm lists generic resources only if AccountingStorageTRES of the site does
        has_gpus=True if "gres/gpu" in fields.get("TRES", "") else None,
        details={f"slurm.{it}": fields[it] for it in _DETAIL_FIELDS if fields.get(it, "") not in _NO_VALUES},
    )


def _smallest(largest_node: int | None, limit: str | None) -> int | None:
    return min((it for it in (largest_node, parse_count(limit)) if it is not None), default=None)
