"""Cancelling, holding and releasing jobs, and what LSF says to it.

None of the commands can be told what else a job must be: the other options of bkill, bstop and bresume
narrow the id 0 alone, by which a name means every job of that name. So the tags are looked up just
before; a job of the same user that gets the id between the two is changed in place of the one that had
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import lsf
from ..native_ids import arrays_of, named, together

# bkill, bstop and bresume, for each job that they did nothing about, and for each other
_REFUSED = re.compile(r"^Job <(.+?)>: (.+?)\.?$", re.MULTILINE)
_CHANGED = re.compile(r"Job <(.+?)> is being")
# It is done as soon as the job's node can be reached.
_UNDER_WAY = "Operation is in progress"
_OVER = ("Job has already finished", "No matching job found")


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs: INT, TERM and KILL, `JOB_TERMINATE_INTERVAL` apart."""
    return lsf("bkill", *together(native_ids))


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is suspended."""
    return lsf("bstop", *together(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return lsf("bresume", *together(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled."""
    return _refusals(result, native_ids, over=_OVER)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not held or released."""
    return _refusals(result, native_ids)


parse_release = parse_hold


def _refusals(
    result: CommandResult, native_ids: Sequence[str], over: Iterable[str] = ()
) -> Mapping[str, str]:
    said = {it: why for text, why in _REFUSED.findall(result.stderr) for it in _meant(text, native_ids)}
    under_way = {native_id for native_id, why in said.items() if _UNDER_WAY in why}
    refused = {native_id: why for native_id, why in said.items() if native_id not in under_way}
    done = under_way.union(*(_meant(text, native_ids) for text in _CHANGED.findall(result.stdout)))
    return refusals(result, native_ids, refused, over=over, done=done)


def _meant(text: str, native_ids: Sequence[str]) -> set[str]:
    """Which jobs LSF means: one, elements of an array, or an array in place of those it was told of."""
    elements = {native_id for native_id, array in arrays_of(native_ids).items() if array == text}
    return elements.union(named(text))
