"""Asking squeue for the states of jobs and for jobs by their tag, and reading its answers.

squeue tells what slurmctld still has in memory: every unfinished job, and finished ones for `MinJobAge`. Its
`--json` says more, but lists the jobs of the whole cluster whatever it was asked for, takes 20 times as long,
and returns 0 when there is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site

from .commands import slurm
from .exits import End, end_of_wait_status
from .hostlist import nodes
from .ids import askable, is_id, names_of
from .observing import Moments, observed
from .times import time

# squeue(1): --Format. What stands behind a colon ends the field, whatever its length (Slurm 20.02 and
# later). The reason comes last, since it may be any text. Nothing here is the user's to choose.
_FIELDS = (
    "JobArrayID",
    "JobID",
    "State",
    "exit_code",
    "RestartCnt",
    "SubmitTime",
    "StartTime",
    "EndTime",
    "NodeList",
    "Reason",
)
_SEPARATOR = "|"
# Jobs in hidden partitions and finished ones too; each element of an array in a line of its own
_WHATEVER = ("--noheader", "--all", "--states=all", "--array")
# What squeue says, with code 1, if the one job that it was asked for is unknown.
_UNKNOWN_JOB = "Invalid job id"


@attrs.frozen(slots=True)
class Row:
    """One job as squeue prints it, in the order of `_FIELDS`."""

    shown: str
    number: str
    state: str
    exit_code: str
    restarts: str
    submitted: str
    started: str
    ended: str
    nodes: str
    reason: str


def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    which = "--me" if native_ids is None else f"--jobs={','.join(askable(native_ids) or native_ids)}"
    return slurm(site, "squeue", *_WHATEVER, f"--Format={_format(_FIELDS)}", which)


def statuses(result: CommandResult, native_ids: Sequence[str] | None) -> dict[str, Observation]:
    """What squeue said about each job; a line that is none of a job's costs no other its place."""
    if result.returncode == 1 and _UNKNOWN_JOB in result.stderr:
        return {}
    asked = None if native_ids is None else frozenset(native_ids)
    return {
        name: observation(row)
        for row in rows(result.checked().stdout)
        for name in names_of(row.shown, row.number)
        if asked is None or name in asked
    }


def find(site: Site) -> Command:
    """The command that lists the user's jobs with their comments, in which the tags are."""
    return slurm(site, "squeue", *_WHATEVER, f"--Format={_format(('JobArrayID', 'Comment'))}", "--me")


def tagged(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs whose comment is, or ends with, one of the tags."""
    sought = frozenset(tags)
    found: dict[str, str] = {}
    for line in result.checked().stdout.splitlines():
        shown, separator, comment = line.partition(_SEPARATOR)
        words = comment.removesuffix(_SEPARATOR).split()
        if separator and is_id(shown) and words and words[-1] in sought:
            found[words[-1]] = shown
    return found


def rows(output: str) -> list[Row]:
    """The lines that are a job's; the second and later lines of a reason are not."""
    split = (line.split(_SEPARATOR, len(_FIELDS) - 1) for line in output.splitlines())
    return [Row(*fields) for fields in split if len(fields) == len(_FIELDS) and is_id(fields[0])]


def observation(row: Row) -> Observation:
    """What a line of squeue says about a job."""
    ran = nodes(row.nodes)
    # A status of a job that never ran is Slurm's own, such as 1 where a request was refused.
    has_status = bool(ran) and row.exit_code.isdecimal()
    return observed(
        row.state,
        why=row.reason.removesuffix(_SEPARATOR).strip(),
        end=end_of_wait_status(int(row.exit_code)) if has_status else End(),
        moments=Moments(time(row.submitted), time(row.started), time(row.ended)),
        ran_on=ran,
        restarts=int(row.restarts) if row.restarts.isdecimal() else None,
    )


def _format(fields: Sequence[str]) -> str:
    return ",".join(f"{field}:{_SEPARATOR}" for field in fields)
