"""Cancels, holds and releases jobs, and parses OAR's refusals.

Each command selects jobs by an SQL condition. For `oardel`, a job's name must also end with the tag that a
poll has seen a moment before, so that it ends no job that was given the id of another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, hookimpl
from jpsi.plugin.kit import refusals

from .native_ids import exactly

_REFUSED = re.compile(r"^(?:/!\\ )?Cannot (?:frag|hold|resume) ([0-9]+) ?[;:] ?(.+)$", re.MULTILINE)
_REQUESTED = re.compile(r"^\[([0-9]+)\] ", re.MULTILINE)
_ALREADY_ENDED = ("already killed",)


@hookimpl
def cancel(native_ids: Sequence[str], seen: Mapping[str, Observation]) -> Command:
    """Return the command that ends jobs."""
    return Command(["oardel", "--sql", exactly(native_ids, seen)])


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not cancelled; oardel passes over ended and unknown ones."""
    return refusals(result, native_ids, _complaints(result, native_ids), harmless=_ALREADY_ENDED)


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that keeps pending jobs from starting."""
    return Command(["oarhold", "--sql", exactly(native_ids, {})])


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that lets held jobs start."""
    return Command(["oarresume", "--sql", exactly(native_ids, {})])


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released; the command passes over ended ones."""
    if result.returncode == 0 and not _REQUESTED.search(result.stdout):
        return dict.fromkeys(native_ids, "the job has ended, or OAR does not know it")
    return refusals(result, native_ids, _complaints(result, native_ids))


parse_release = parse_hold


def _complaints(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return the complaints about jobs; one about a number that jpsi does not use counts for all.

    Elements and resubmitted jobs have such numbers.
    """
    found = dict(_REFUSED.findall(result.stderr))
    others = [why for number, why in found.items() if number not in native_ids]
    return found | (dict.fromkeys(native_ids, others[0]) if others else {})
