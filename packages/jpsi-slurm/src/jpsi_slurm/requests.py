"""Cancelling, holding and releasing jobs, and what Slurm says to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.plugin import Command, CommandResult, Site

from .commands import slurm
from .ids import askable, is_id

# scancel, for each job that it could not cancel
_NOT_CANCELLED = re.compile(r"Kill job error on job id (\S+): (.+)")
# scontrol, for each job that it could not hold or release
_NOT_CHANGED = re.compile(r"(?:.*error: )?(.+) for job (\S+)\Z")
# scancel -v, and some versions without it: the job is over
_OVER = ("already completing or completed", "Invalid job id specified")


def cancel(native_ids: Sequence[str], site: Site) -> Command:
    """The command that ends jobs: TERM for all their processes, and KILL after `KillWait`."""
    return slurm(site, "scancel", *askable(native_ids))


def hold(native_ids: Sequence[str], site: Site) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return slurm(site, "scontrol", "hold", *askable(native_ids))


def release(native_ids: Sequence[str], site: Site) -> Command:
    """The command that lets held jobs start."""
    return slurm(site, "scontrol", "release", *askable(native_ids))


def not_cancelled(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not cancelled; one that is over, or was never there, is not among them."""
    refused = dict(_NOT_CANCELLED.findall(result.stderr))
    return {
        native_id: why
        for native_id, why in _failed(result, native_ids, refused)
        if not any(over in why for over in _OVER)
    }


def not_changed(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not held or released."""
    lines = (_NOT_CHANGED.match(line.strip()) for line in result.stderr.splitlines())
    refused = {line[2]: line[1] for line in lines if line is not None}
    return dict(_failed(result, native_ids, refused))


def _failed(
    result: CommandResult, native_ids: Sequence[str], refused: dict[str, str]
) -> Iterator[tuple[str, str]]:
    succeeded = result.returncode == 0 and not result.timed_out
    for native_id in native_ids:
        if not is_id(native_id):
            yield native_id, f"{native_id!r} is no job id of Slurm's"
        elif native_id in refused:
            yield native_id, refused[native_id]
        elif not succeeded and not refused:
            yield native_id, result.complaint
