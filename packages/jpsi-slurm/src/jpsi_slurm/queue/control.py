"""Cancels, holds and releases jobs, and parses Slurm's refusals.

The commands name jobs by native id only; the engine has checked the tags just before. Filters of scancel such
as `--name` add no safety: with them scancel lists all jobs of the cluster and sends the same requests by id.
They also do harm: if some pending elements of an array are to be cancelled, scancel cancels all pending ones
(seen with Slurm 22.05). scontrol has no filters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Site, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import slurm_command
from ..native_ids import compress_ids, expand_ids

# scancel's message for each job that it could not cancel
_NOT_CANCELLED = re.compile(r"Kill job error on job id (\S+): (.+)")
# scontrol's message for each job that it could not hold or release
_NOT_CHANGED = re.compile(r"^ *(?:.*error: )?(.+) for job (\S+)$", re.MULTILINE)
# Messages of scancel -v, and of some versions without -v, if the job has already ended
_ALREADY_ENDED = ("already completing or completed", "Invalid job id specified")


@hookimpl
def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """Return the scancel command: Slurm sends TERM to all processes of a job, and KILL after `KillWait`."""
    return slurm_command(site, "scancel", *compress_ids(native_ids))


@hookimpl
def hold(native_ids: Sequence[str], site: Site) -> Command:
    """Return the command that keeps pending jobs from starting; a running job is held once it is requeued."""
    return slurm_command(site, "scontrol", "hold", *native_ids)


@hookimpl
def release(native_ids: Sequence[str], site: Site) -> Command:
    """Return the command that lets held jobs start."""
    return slurm_command(site, "scontrol", "release", *native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that scancel did not cancel."""
    messages = _NOT_CANCELLED.findall(result.stderr)
    reasons = {native_id: reason for text, reason in messages for native_id in expand_ids(text)}
    return refusals(result, native_ids, reasons, harmless=_ALREADY_ENDED)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that scontrol did not hold or release."""
    messages = {native_id: reason for reason, native_id in _NOT_CHANGED.findall(result.stderr)}
    return refusals(result, native_ids, messages)


parse_release = parse_hold
