"""Cancelling, holding and releasing jobs, and what Slurm says to it.

All by native ids alone: the tags were looked at a moment before. The filters of scancel, such as `--name`,
add nothing to that: with them it lists all jobs of the cluster itself, and then sends the same requests by
id. And they harm: of an array of which some elements that wait are to be cancelled, it cancels all that wait
(seen with Slurm 22.05). scontrol has no filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Site, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import slurm
from ..native_ids import named, together

# scancel, for each job that it could not cancel
_NOT_CANCELLED = re.compile(r"Kill job error on job id (\S+): (.+)")
# scontrol, for each job that it could not hold or release
_NOT_CHANGED = re.compile(r"^ *(?:.*error: )?(.+) for job (\S+)$", re.MULTILINE)
# scancel -v, and some versions without it: the job is over
_OVER = ("already completing or completed", "Invalid job id specified")


@hookimpl
def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """The command that ends jobs: TERM for all their processes, and KILL after `KillWait`."""
    return slurm(site, "scancel", *together(native_ids))


@hookimpl
def hold(native_ids: Sequence[str], site: Site) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return slurm(site, "scontrol", "hold", *native_ids)


@hookimpl
def release(native_ids: Sequence[str], site: Site) -> Command:
    """The command that lets held jobs start."""
    return slurm(site, "scontrol", "release", *native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled."""
    said = _NOT_CANCELLED.findall(result.stderr)
    refused = {native_id: why for text, why in said for native_id in named(text)}
    return refusals(result, native_ids, refused, over=_OVER)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    said = {native_id: why for why, native_id in _NOT_CHANGED.findall(result.stderr)}
    return refusals(result, native_ids, said)


parse_release = parse_hold
