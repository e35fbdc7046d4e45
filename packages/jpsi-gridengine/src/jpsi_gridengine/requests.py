"""Cancelling, holding and releasing jobs, and what Grid Engine says to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl, refusals

from .commands import gridengine

_ABOUT_A_JOB = re.compile(r"\bjob(?:-array task)? \"?([0-9]+(?:\.[0-9]+)?)\"?(?![0-9.])")
# What is said on standard output of a job that has done what was wanted, or is over
_DONE = ("has registered the job", "has deleted job", "is already in deletion", "modified hold of job")
_UNKNOWN = "does not exist"


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs, by KILL for those that run."""
    return gridengine("qdel", *native_ids)


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return gridengine("qhold", *native_ids)


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return gridengine("qrls", *native_ids)


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled."""
    return _refusals(result, native_ids, over=[_UNKNOWN])


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    return _refusals(result, native_ids)


parse_release = parse_hold


def _refusals(
    result: CommandResult, native_ids: Sequence[str], over: Iterable[str] = ()
) -> Mapping[str, str]:
    lines = [line.strip() for line in result.stdout.splitlines()]
    about = [(native_id, line) for line in lines for native_id in _ABOUT_A_JOB.findall(line)]
    done = {native_id for native_id, line in about if any(text in line for text in _DONE)}
    said = {native_id: line for native_id, line in about if not any(text in line for text in _DONE)}
    return refusals(result, native_ids, said, over=over, done=done)
