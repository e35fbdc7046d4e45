"""Cancels, holds and releases jobs, and parses the batch system's refusals.

The executors `pbs` and `torque` share it; `change_by_ranges` is for Torque, whose commands cut long lists.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, hookimpl
from jpsi.plugin.kit import refusals, write_indices

from ..native_ids import compress_ids, group_by_array, is_element, map_to_queried

# qstat: Unknown Job Id 17.server; qdel: nonexistent job id: 17.server
_JOB_MESSAGE = re.compile(r"^ *(?:qdel|qhold|qrls): (.+?)[: ]* (\d\S*) *$", re.MULTILINE)
# Messages of qdel about a job that has already ended
_ALREADY_ENDED = (
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
# src/cmds/qdel.c of Torque 6.1.3: the buffer `extend` has 1024 bytes
_MAX_RANGES_LENGTH = 1000


@hookimpl
def cancel(native_ids: Sequence[str]) -> Command:
    """Return the qdel command, which ends pending and running jobs.

    OpenPBS 23.06.06 may silently skip the last of several arguments if some are running elements.
    """
    words = compress_ids(native_ids)
    if len(words) == 1 or not group_by_array(native_ids):
        return Command(["qdel", *words])
    return _change_one_by_one("qdel", (("", word) for word in words))


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that keeps pending jobs from starting."""
    return Command(["qhold", *native_ids])


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that lets held jobs start."""
    return Command(["qrls", *native_ids])


def change_by_ranges(program: str, native_ids: Sequence[str]) -> Command:
    """Return the command that runs one of Torque's programs for jobs, with one list of ranges at a time."""
    arrays = group_by_array(native_ids)
    if not arrays:
        return Command([program, *native_ids])
    single = [("", native_id) for native_id in native_ids if not is_element(native_id)]
    elements = [(text, array) for array, indices in arrays.items() for text in _split_ranges(indices)]
    return _change_one_by_one(program, [*single, *elements])


def _change_one_by_one(program: str, pairs: Iterable[tuple[str, str]]) -> Command:
    """Return a command that runs the program once per pair: a list of ranges, or "", and the job or array."""
    return Command(["/bin/sh", "-c", _ONE_BY_ONE, program, *itertools.chain(*pairs)])


def _split_ranges(indices: Iterable[int]) -> Iterator[str]:
    """Yield the ranges in texts that fit Torque's buffer, as Torque cuts longer ones."""
    text = ""
    for run in write_indices(indices).split(","):
        if len(text) + len(run) >= _MAX_RANGES_LENGTH:
            yield text
            text = ""
        text = f"{text},{run}" if text else run
    yield text


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that qdel did not delete."""
    return _refusals(result, native_ids, over=_ALREADY_ENDED)


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released."""
    return _refusals(result, native_ids)


def _refusals(
    result: CommandResult, native_ids: Sequence[str], over: Iterable[str] = ()
) -> Mapping[str, str]:
    messages = _JOB_MESSAGE.findall(result.stderr)
    reasons = map_to_queried({listed_id: message for message, listed_id in messages}, native_ids)
    # a message about no job may mean that the command reached none of them
    is_cut_off = len(messages) < len([line for line in result.stderr.splitlines() if line.strip()])
    return refusals(result, native_ids, reasons, harmless=over, changed=() if is_cut_off else None)
