"""Cancelling, holding and releasing jobs, and what the batch system says to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl, refusals

from .ids import by_asked

# qstat: Unknown Job Id 17.server; qdel: nonexistent job id: 17.server
_ABOUT_A_JOB = re.compile(r"^ *(?:qdel|qhold|qrls): (.+?)[: ]* (\d\S*) *$", re.MULTILINE)
# What qdel says of a job that needs no deleting
_OVER = ("Unknown Job Id", "nonexistent job id", "Job has finished", "Request invalid for state of job")


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs, pending or running."""
    return Command(["qdel", *native_ids])


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting."""
    return Command(["qhold", *native_ids])


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return Command(["qrls", *native_ids])


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not deleted."""
    return _refusals(result, native_ids, over=_OVER)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    return _refusals(result, native_ids)


def _refusals(
    result: CommandResult, native_ids: Sequence[str], over: Iterable[str] = ()
) -> Mapping[str, str]:
    about = _ABOUT_A_JOB.findall(result.stderr)
    said = by_asked({shown: why for why, shown in about}, native_ids)
    # what is about no job may have kept the command from any
    is_cut_off = len(about) < len([line for line in result.stderr.splitlines() if line.strip()])
    return refusals(result, native_ids, said, over=over, done=() if is_cut_off else None)
