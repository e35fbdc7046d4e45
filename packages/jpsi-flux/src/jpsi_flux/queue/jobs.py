"""Asking `flux jobs` for the states of jobs and for jobs by their tag, and reading its answers.

Flux keeps ended jobs, with all that is known of them, until they are purged; what is purged is known
nowhere.

A native id begins with the time since the instance began, in milliseconds, so that an instance that was
killed and started again from an older state hardly gives one twice. The name proves whose job it is
nonetheless. What remains possible is a letter or digit that became another letter or digit, where nothing
else tells the same.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import tagged

from ..commands import command
from ..native_ids import canonical_id
from ..states import EXCEPTIONS
from .corruption import is_nearly, tag_in
from .observations import Job, name_of, observation

# For each job that is not known, with code 1 if none is, and 0 before Flux 0.80
_UNKNOWN = re.compile(r"^JobID (\S+) unknown$", re.MULTILINE)
_SOME_ANSWER = frozenset({0, 1})
# One that could not be looked up, which is otherwise left out like one that is not known
_FAILED = re.compile(r"^rpc: ", re.MULTILINE)
# Of a job that has ended, `status` is its `result`, and otherwise its `state`.
_ENDED = "INACTIVE"
# All of the user's, however many and whatever their state: the default is 1000 that have not ended.
_ALL = ("-a", "-c0")
# Of those that have ended, those of the last day: others have begun, which their claim tells.
_RECENT = ("--since=-1d", "-c0")


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    return command(site, "flux", "jobs", "--json", *(_ALL if native_ids is None else native_ids))


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """What Flux said about each job; of one that it does not know, that it is unknown."""
    answer = _read(result, native_ids)
    found = {str(job["id"]): _fenced(job) for job in answer.jobs}
    denied = {it: Observation.denied(why) for it, why in answer.denied.items() if it in (native_ids or ())}
    return denied | found


def _fenced(job: Job) -> Observation:
    try:
        return observation(job)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        # One odd job keeps its state, and costs no other its own.
        return Observation(state=None, word=str(job["status"]), tag=tag_in(name_of(job)))


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their names, at whose ends the tags are."""
    return command(site, "flux", "jobs", "--json", *_RECENT)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The ids of the jobs that carry the tags."""
    return tagged(((name_of(job), str(job["id"])) for job in _read(result, None).jobs), tags)


class _Answer(NamedTuple):
    """What Flux said."""

    jobs: Sequence[Job]
    #: What it said of ids that it does not know.
    denied: Mapping[str, str]


def _read(result: CommandResult, native_ids: Sequence[str] | None) -> _Answer:
    """An answer about these jobs, or about all.

    It is one line of JSON, which ends where it ends. Each job that was asked about by its id is told of, or
    said to be unknown.

    Raises:
        SubmitException: it is none, or not whole.
    """
    answers, denied = list(_objects(result.stdout)), _denied(result.stderr)
    is_answer = result.returncode in _SOME_ANSWER and (answers or denied)
    if result.timed_out or not is_answer or len(answers) > 1 or _FAILED.search(result.stderr):
        raise result.checked().no_answer
    if not denied:
        result.checked()
    jobs = [job for answer in answers for job in _jobs(answer)]
    if not all(map(_is_whole, jobs)):
        raise result.no_answer
    told = {str(job["id"]) for job in jobs}
    if not (answers if native_ids is None else told | denied.keys() >= {*native_ids}):
        raise result.no_answer
    return _Answer(jobs, denied)


def _objects(output: str) -> Iterator[Mapping[str, object]]:
    """The lines that are JSON objects, whatever stands around them."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if "jobs" in found or "id" in found:
                yield found


def _jobs(answer: Mapping[str, object]) -> Iterator[Job]:
    """The jobs of an answer, which is one job if one was asked for."""
    listed = answer.get("jobs", [answer])
    for job in listed if isinstance(listed, list) else [{}]:
        yield job if isinstance(job, dict) else {}


def _denied(said: str) -> dict[str, str]:
    """The ids that Flux says it does not know, and in which words."""
    found = {}
    for match in _UNKNOWN.finditer(said):
        with contextlib.suppress(ValueError):
            found[canonical_id(match[1])] = match[0]
    return found


def _is_whole(job: Job) -> bool:
    """Whether a job has what each has, and what is told of it twice is the same."""
    exception = job.get("exception")
    return (
        type(job.get("id")) is int
        and all(isinstance(text, str) for text in (job.get("state"), job.get("status"), name_of(job)))
        and isinstance(job.get("t_submit"), float)
        and isinstance(exception, dict)
        and isinstance(exception.get("occurred"), bool)
        and _is_kind(str(exception.get("type", "")))
        and all(map(str.isidentifier, [*job, *exception]))
        and job["status"] == (job.get("result") if job["state"] == _ENDED else job["state"])
        and _is_same_id(job)
    )


def _is_kind(kind: str) -> bool:
    """Whether it can be the type of an exception, which users choose too."""
    return kind.isprintable() and not is_nearly(kind, EXCEPTIONS)


def _is_same_id(job: Job) -> bool:
    """Whether the id in letters is that in digits; Flux 0.58 has only the latter."""
    try:
        return "jobid" not in job or canonical_id(str(job["jobid"])) == str(job["id"])
    except ValueError:
        return False
