"""Cancelling, holding and releasing jobs, and what the batch system says to it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl
from jpsi.plugin.kit import refusals, write_indices

from ..native_ids import by_array, by_asked, is_element, together

# qstat: Unknown Job Id 17.server; qdel: nonexistent job id: 17.server
_ABOUT_A_JOB = re.compile(r"^ *(?:qdel|qhold|qrls): (.+?)[: ]* (\d\S*) *$", re.MULTILINE)
# What qdel says of a job that needs no deleting
_OVER = (
    *("Unknown Job Id", "nonexistent job id", "Job has finished", "Request invalid for state of job"),
    "Request invalid for finished array subjob",
)

_ONE_BY_ONE = """\
code=0
while [ "$#" -gt 1 ]; do
    "$0" ${1:+-t "$1"} "$2" || code=$?
    shift 2
done
exit "$code"
"""
# src/cmds/qdel.c of Torque 6.1.3: `extend`, which has room for 1024 bytes
_LONGEST_RANGE = 1000


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """The command that ends jobs, pending or running.

    OpenPBS 23.06.06 may pass over the last of several words, in silence, if some are running elements.
    """
    words = together(native_ids)
    if len(words) == 1 or not by_array(native_ids):
        return Command(["qdel", *words])
    return _one_by_one("qdel", (("", word) for word in words))


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting."""
    return Command(["qhold", *native_ids])


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return Command(["qrls", *native_ids])


def request_by_ranges(program: str, native_ids: Sequence[str]) -> Command:
    """The command that has a program of Torque's change jobs, which takes ranges of one array at a time."""
    arrays = by_array(native_ids)
    if not arrays:
        return Command([program, *native_ids])
    single = [("", native_id) for native_id in native_ids if not is_element(native_id)]
    several = [(text, array) for array, indices in arrays.items() for text in _texts(indices)]
    return _one_by_one(program, [*single, *several])


def _one_by_one(program: str, pairs: Iterable[tuple[str, str]]) -> Command:
    """A call for each pair of a range, or nothing, and the job or the array that it is of."""
    return Command(["/bin/sh", "-c", _ONE_BY_ONE, program, *itertools.chain(*pairs)])


def _texts(indices: Iterable[int]) -> Iterator[str]:
    """Ranges in texts that are short enough for Torque, which cuts others off."""
    text = ""
    for run in write_indices(indices).split(","):
        if len(text) + len(run) >= _LONGEST_RANGE:
            yield text
            text = ""
        text = f"{text},{run}" if text else run
    yield text


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
