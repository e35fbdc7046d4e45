"""Cancelling, holding and releasing jobs, and what Grid Engine says to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.plugin import Command, CommandResult

from .commands import gridengine
from .ids import askable, is_id

# What is said on standard output of a job that has done what was wanted, or is over
_DONE = ("has registered the job", "has deleted job", "is already in deletion", "modified hold of job")
_UNKNOWN = "does not exist"


def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs, by KILL for those that run."""
    return gridengine("qdel", *askable(native_ids))


def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return gridengine("qhold", *askable(native_ids))


def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return gridengine("qrls", *askable(native_ids))


def not_cancelled(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not cancelled; one that is over, or was never there, is not among them."""
    return {
        native_id: why for native_id, why in not_changed(result, native_ids).items() if _UNKNOWN not in why
    }


def not_changed(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not held or released."""
    return dict(_failed(result, native_ids))


def _failed(result: CommandResult, native_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    succeeded = result.returncode == 0 and not result.timed_out
    lines = result.stdout.splitlines()
    for native_id in native_ids:
        about = re.compile(rf"\bjob(-array task)? \"?{re.escape(native_id)}\"?(?![0-9.])")
        said = [line.strip() for line in lines if about.search(line)]
        if not is_id(native_id):
            yield native_id, f"{native_id!r} is no job id of Grid Engine's"
        elif said:
            yield from ((native_id, line) for line in said if not any(done in line for done in _DONE))
        elif not succeeded:
            yield native_id, result.complaint
