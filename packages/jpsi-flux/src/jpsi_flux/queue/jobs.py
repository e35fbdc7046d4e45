"""Queries `flux jobs` for the states of jobs and for jobs by tag, and parses its output.

Flux keeps ended jobs with all their data until they are purged; purged jobs cannot be queried.

A native id starts with the milliseconds since the instance started, so that even an instance that was killed
and restarted from an older state hardly reuses ids. jpsi checks the job's name nonetheless. The checks miss a
letter or digit that was changed into another one in text that the output has only once.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import ids_by_tag

from ..commands import command
from ..native_ids import canonical_id
from ..states import EXCEPTIONS
from .corruption import is_nearly, tag_in
from .observations import Job, name_of, observation

# Flux's message about each unknown job; the exit code is 1 if all are unknown, but 0 before Flux 0.80
_UNKNOWN = re.compile(r"^JobID (\S+) unknown$", re.MULTILINE)
_SOME_ANSWER = frozenset({0, 1})
# The message about a failed lookup; the job is then left out of the output like an unknown one
_FAILED = re.compile(r"^rpc: ", re.MULTILINE)
# The state of an ended job; its `status` is its `result`, that of other jobs is their `state`.
_ENDED = "INACTIVE"
# All of the user's jobs in any state and number; the default is 1000 jobs that have not ended.
_ALL = ("-a", "-c0")
# Of the ended jobs, only those of the last day: older ones have started, as their claims show.
_RECENT = ("--since=-1d", "-c0")


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the command that queries these jobs, or all jobs of the user if None."""
    return command(site, "flux", "jobs", "--json", *(_ALL if native_ids is None else native_ids))


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return an Observation of each job in Flux's output, including those that Flux does not know."""
    answer = _read(result, native_ids)
    found = {str(job["id"]): _fenced(job) for job in answer.jobs}
    denied = {it: Observation.denied(why) for it, why in answer.denied.items() if it in (native_ids or ())}
    return denied | found


def _fenced(job: Job) -> Observation:
    try:
        return observation(job)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        # A malformed job keeps its state, and the other jobs still get theirs.
        return Observation(state=None, word=str(job["status"]), tag=tag_in(name_of(job)))


@hookimpl
def find(site: Site) -> Command:
    """Return the command that lists the user's jobs with their names, which end with the tags."""
    return command(site, "flux", "jobs", "--json", *_RECENT)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags."""
    return ids_by_tag(((name_of(job), str(job["id"])) for job in _read(result, None).jobs), tags)


class _Answer(NamedTuple):
    """The parsed output of `flux jobs`."""

    jobs: Sequence[Job]
    #: Flux's messages about unknown ids.
    denied: Mapping[str, str]


def _read(result: CommandResult, native_ids: Sequence[str] | None) -> _Answer:
    """Parse the output of a query for these jobs, or for all jobs if None.

    The output is one line of JSON. For each queried id it has a job, or Flux prints that the id is unknown.

    Raises:
        SubmitException: Flux failed, or its output is incomplete.
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
    """Yield the lines that are JSON objects with jobs; other lines are skipped."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if "jobs" in found or "id" in found:
                yield found


def _jobs(answer: Mapping[str, object]) -> Iterator[Job]:
    """Yield the jobs in a JSON object, which is a single job if only one was queried."""
    listed = answer.get("jobs", [answer])
    for job in listed if isinstance(listed, list) else [{}]:
        yield job if isinstance(job, dict) else {}


def _denied(said: str) -> dict[str, str]:
    """Return Flux's message for each id that it does not know."""
    found = {}
    for match in _UNKNOWN.finditer(said):
        with contextlib.suppress(ValueError):
            found[canonical_id(match[1])] = match[0]
    return found


def _is_whole(job: Job) -> bool:
    """Return True if a job has all required fields, and its redundant fields agree."""
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
    """Return True if a text can be an exception's type; users choose types too."""
    return kind.isprintable() and not is_nearly(kind, EXCEPTIONS)


def _is_same_id(job: Job) -> bool:
    """Return True if the F58 id equals the decimal id; Flux 0.58 prints only the latter."""
    try:
        return "jobid" not in job or canonical_id(str(job["jobid"])) == str(job["id"])
    except ValueError:
        return False
