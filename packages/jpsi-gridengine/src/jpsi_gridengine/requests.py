"""Cancelling, holding and releasing jobs, and what Grid Engine says to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl, refusals

from .commands import gridengine
from .ids import number_of, together

# What is said of tasks is said of their array: they have one owner, and are there or not.
_ABOUT_A_JOB = re.compile(r"\bjob(?:-array task)? \"?([0-9]+)(?:\.[0-9]+)?\"?(?![0-9.])")
# What is said on standard output of a job that has been changed, and of one that needs no end any more
_CHANGED = ("has registered the job", "has deleted job", "modified hold of job")
_OVER = ("is already in deletion", "does not exist", "comprises no tasks")


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs, by KILL for those that run."""
    return gridengine("qdel", *together(native_ids))


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return gridengine("qhold", *together(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return gridengine("qrls", *together(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled."""
    return _refusals(result, native_ids, (*_CHANGED, *_OVER))


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    return _refusals(result, native_ids, _CHANGED)


parse_release = parse_hold


def _refusals(result: CommandResult, native_ids: Sequence[str], good: Collection[str]) -> Mapping[str, str]:
    """Why which jobs were not changed, by what is good to hear of one."""
    lines = [line.strip() for line in result.stdout.splitlines()]
    about = [(job, line) for line in lines for job in _ABOUT_A_JOB.findall(line)]
    done = {job for job, line in about if any(text in line for text in good)}
    said = {job: line for job, line in about if not any(text in line for text in good)}
    numbers = {native_id: number_of(native_id) for native_id in native_ids}
    refused = refusals(result, list(numbers.values()), said, done=done)
    return {native_id: refused[job] for native_id, job in numbers.items() if job in refused}
