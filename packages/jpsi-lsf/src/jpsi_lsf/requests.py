"""Cancelling, holding and releasing jobs, and what LSF says to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.plugin import Command, CommandResult, SubmitException

from .commands import lsf
from .ids import askable, is_id

# bkill, bstop and bresume, for each job that they did nothing about
_REFUSED = re.compile(r"^Job <(.+?)>: (.+?)\.?$", re.MULTILINE)
# It is done as soon as the job's node can be reached.
_UNDER_WAY = "Operation is in progress"
_OVER = ("Job has already finished", "No matching job found")


def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs: INT, TERM and KILL, `JOB_TERMINATE_INTERVAL` apart."""
    return lsf("bkill", *_some(native_ids))


def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is suspended."""
    return lsf("bstop", *_some(native_ids))


def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return lsf("bresume", *_some(native_ids))


def not_cancelled(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not cancelled; one that is over, or was never there, is not among them."""
    refused = not_changed(result, native_ids)
    return {name: why for name, why in refused.items() if not any(over in why for over in _OVER)}


def not_changed(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which jobs were not held or released."""
    return dict(_failed(result, native_ids, dict(_REFUSED.findall(result.stderr))))


def _some(native_ids: Sequence[str]) -> list[str]:
    """The ids that LSF takes for ids; without one, these commands choose a job themselves."""
    ids = askable(native_ids)
    if not ids:
        msg = f"LSF knows no job ids such as {', '.join(map(repr, native_ids))}"
        raise SubmitException(msg)
    return ids


def _failed(
    result: CommandResult, native_ids: Sequence[str], refused: dict[str, str]
) -> Iterator[tuple[str, str]]:
    for native_id in native_ids:
        if not is_id(native_id):
            yield native_id, f"{native_id!r} is no job id of LSF's"
        elif native_id in refused:
            if _UNDER_WAY not in refused[native_id]:
                yield native_id, refused[native_id]
        elif result.returncode != 0 and f"Job <{native_id}> is being" not in result.stdout:
            yield native_id, result.complaint
