"""Cancels, holds and releases jobs, and parses LSF's refusals.

None of the commands can check a job's tag: the other options of bkill, bstop and bresume only narrow the id
0, with which a name means every job of that name. The engine therefore checks the tags just before. If
another job of the same user gets the id in between, the command changes that job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import lsf_command
from ..native_ids import arrays_of, compress_ids, expand_ids

# Messages of bkill, bstop and bresume about each job that they did not change
_REFUSED = re.compile(r"^Job <(.+?)>: (.+?)\.?$", re.MULTILINE)
# Their messages about each job that they changed
_CHANGED = re.compile(r"Job <(.+?)> is being")
# LSF carries out the request as soon as it reaches the job's node.
_IN_PROGRESS = "Operation is in progress"
_ALREADY_ENDED = ("Job has already finished", "No matching job found")


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """Return the bkill command: LSF sends INT, TERM and KILL, `JOB_TERMINATE_INTERVAL` apart."""
    return lsf_command("bkill", *compress_ids(native_ids))


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that keeps pending jobs from starting and suspends running ones."""
    return lsf_command("bstop", *compress_ids(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that lets held jobs start."""
    return lsf_command("bresume", *compress_ids(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that bkill did not cancel."""
    return _refusals(result, native_ids, over=_ALREADY_ENDED)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released."""
    return _refusals(result, native_ids)


parse_release = parse_hold


def _refusals(
    result: CommandResult, native_ids: Sequence[str], over: Iterable[str] = ()
) -> Mapping[str, str]:
    messages = {
        native_id: message
        for text, message in _REFUSED.findall(result.stderr)
        for native_id in _expand_answer(text, native_ids)
    }
    in_progress = {native_id for native_id, message in messages.items() if _IN_PROGRESS in message}
    reasons = {native_id: message for native_id, message in messages.items() if native_id not in in_progress}
    done = in_progress.union(*(_expand_answer(text, native_ids) for text in _CHANGED.findall(result.stdout)))
    return refusals(result, native_ids, reasons, harmless=over, changed=done)


def _expand_answer(text: str, native_ids: Sequence[str]) -> set[str]:
    """Return the ids that LSF means by a text: a job, array elements, or an array for its named elements."""
    elements = {native_id for native_id, array in arrays_of(native_ids).items() if array == text}
    return elements.union(expand_ids(text))
