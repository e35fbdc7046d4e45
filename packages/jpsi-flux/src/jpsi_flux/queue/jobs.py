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
from jpsi.plugin.kit import ids_by_tag, is_nearly

from ..commands import command
from ..native_ids import canonical_id
from ..states import EXCEPTIONS
from .observations import Job, job_name, job_tag, observe_job

# Flux's message about each unknown job; the exit code is 1 if all are unknown, but 0 before Flux 0.80
_UNKNOWN = re.compile(r"^JobID (\S+) unknown$", re.MULTILINE)
_ANSWER_CODES = frozenset({0, 1})
# The message about a failed lookup; the job is then left out of the output like an unknown one
_FAILED = re.compile(r"^rpc: ", re.MULTILINE)
# The state of an ended job; its `status` is its `result`, that of other jobs is their `state`.
_ENDED = "INACTIVE"
# All of the user's jobs in any state and number; the default is 1000 jobs that have not ended.
_ALL_JOBS = ("-a", "-c0")
# Of the ended jobs, only those of the last day: older ones have started, as their claims show.
_RECENT_JOBS = ("--since=-1d", "-c0")


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the command that queries these jobs, or all jobs of the user if None."""
    return command(site, "flux", "jobs", "--json", *(_ALL_JOBS if native_ids is None else native_ids))


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return an Observation of each job in Flux's output, including those that Flux does not know."""
    listing = _parse_listing(result, native_ids)
    observations = {str(job["id"]): _observe_or_unknown(job) for job in listing.jobs}
    unknown = {
        native_id: Observation.denied(message)
        for native_id, message in listing.unknown.items()
        if native_id in (native_ids or ())
    }
    return unknown | observations


def _observe_or_unknown(job: Job) -> Observation:
    try:
        return observe_job(job)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        # A malformed job keeps its state, and the other jobs still get theirs.
        return Observation(state=None, native_state=str(job["status"]), tag=job_tag(job))


@hookimpl
def find(site: Site) -> Command:
    """Return the command that lists the user's jobs with their names, which end with the tags."""
    return command(site, "flux", "jobs", "--json", *_RECENT_JOBS)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags."""
    return ids_by_tag(((job_name(job), str(job["id"])) for job in _parse_listing(result, None).jobs), tags)


class _Listing(NamedTuple):
    """The parsed output of `flux jobs`."""

    jobs: Sequence[Job]
    #: Flux's messages about unknown ids.
    unknown: Mapping[str, str]


def _parse_listing(result: CommandResult, native_ids: Sequence[str] | None) -> _Listing:
    """Parse the output of a query for these jobs, or for all jobs if None.

    The output is one line of JSON. For each queried id it has a job, or Flux prints that the id is unknown.

    Raises:
        SubmitException: Flux failed, or its output is incomplete.
    """
    documents, unknown = list(_parse_objects(result.stdout)), _parse_unknown_ids(result.stderr)
    is_answer = result.returncode in _ANSWER_CODES and (documents or unknown)
    if result.timed_out or not is_answer or len(documents) > 1 or _FAILED.search(result.stderr):
        raise result.checked().no_answer
    if not unknown:
        result.checked()
    jobs = [job for document in documents for job in _parse_jobs(document)]
    if not all(map(_is_complete, jobs)):
        raise result.no_answer
    listed = {str(job["id"]) for job in jobs}
    if not (documents if native_ids is None else listed | unknown.keys() >= {*native_ids}):
        raise result.no_answer
    return _Listing(jobs, unknown)


def _parse_objects(output: str) -> Iterator[Mapping[str, object]]:
    """Yield the lines that are JSON objects with jobs; other lines are skipped."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if "jobs" in document or "id" in document:
                yield document


def _parse_jobs(document: Mapping[str, object]) -> Iterator[Job]:
    """Yield the jobs in a JSON object, which is a single job if only one was queried."""
    listed = document.get("jobs", [document])
    for job in listed if isinstance(listed, list) else [{}]:
        yield job if isinstance(job, dict) else {}


def _parse_unknown_ids(text: str) -> dict[str, str]:
    """Return Flux's message for each id that it does not know."""
    unknown = {}
    for match in _UNKNOWN.finditer(text):
        with contextlib.suppress(ValueError):
            unknown[canonical_id(match[1])] = match[0]
    return unknown


def _is_complete(job: Job) -> bool:
    """Return True if a job has all required fields, and its redundant fields agree."""
    exception = job.get("exception")
    return (
        type(job.get("id")) is int
        and all(isinstance(text, str) for text in (job.get("state"), job.get("status"), job_name(job)))
        and isinstance(job.get("t_submit"), float)
        and isinstance(exception, dict)
        and isinstance(exception.get("occurred"), bool)
        and _is_valid_kind(str(exception.get("type", "")))
        and all(map(str.isidentifier, [*job, *exception]))
        and job["status"] == (job.get("result") if job["state"] == _ENDED else job["state"])
        and _has_consistent_id(job)
    )


def _is_valid_kind(kind: str) -> bool:
    """Return True if a text can be an exception's type; users choose types too."""
    return kind.isprintable() and not is_nearly(kind, EXCEPTIONS)


def _has_consistent_id(job: Job) -> bool:
    """Return True if the F58 id equals the decimal id; Flux 0.58 prints only the latter."""
    try:
        return "jobid" not in job or canonical_id(str(job["jobid"])) == str(job["id"])
    except ValueError:
        return False
