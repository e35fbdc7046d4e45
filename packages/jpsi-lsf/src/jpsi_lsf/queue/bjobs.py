"""Queries bjobs for the states of jobs and for jobs by tag, and parses its output.

If LSF knows `bjobs -json`, its output has everything. Otherwise, and before the probe, jpsi uses `bjobs -l`,
which all versions have; it does not say why a job ended, so that bhist must be queried for that.

For each queried job, bjobs prints the job or that it is not found; output that lacks both is incomplete.
Array elements are queried by their array, and bjobs does not print elements that LSF has forgotten. An
element therefore counts as missing only if the end of the output has arrived.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import ids_by_tag

from ..commands import lsf
from ..native_ids import array_of, named
from .json_listing import FIELDS, observe_record, parse_records, record_fields, record_id
from .long_listing import Histories, observe_history, parse_bjobs

# bjobs's message about an unknown job; its exit code is the same as for failures.
_UNKNOWN_JOB = re.compile(r"^(Job <(.+?)> is not found|(.+): Illegal job ID)\b", re.MULTILINE)
# bjobs's message if there are no jobs at all
_NO_JOB = re.compile(r"^No (?:unfinished |matching )?job found$", re.MULTILINE)


class _Listed(NamedTuple):
    """A job in bjobs's output."""

    name: str
    description: str
    #: The job's Observation; None if the output does not say enough.
    seen: Observation | None


class _Answer(NamedTuple):
    """The parsed output of bjobs."""

    jobs: Sequence[_Listed]
    #: bjobs's messages about unknown ids.
    denied: Mapping[str, str]
    #: True if the end of the output has arrived.
    is_ended: bool


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the bjobs command for these jobs, or for all jobs of the user if None."""
    form = ["-o", FIELDS, "-json"] if site.offers.get("json") else ["-l"]
    return lsf("bjobs", *form, *(["-a"] if native_ids is None else native_ids))


@hookimpl
def parse_status(
    result: CommandResult, native_ids: Sequence[str] | None, site: Site
) -> Mapping[str, Observation]:
    """Return an Observation of each job in bjobs's output, including those that bjobs does not know."""
    answer = _read(result, native_ids, site)
    seen = {job.name: job.seen for job in answer.jobs if job.seen is not None}
    there = {job.name for job in answer.jobs}
    denied = {it: answer.denied.get(it, answer.denied.get(array_of(it))) for it in native_ids or ()}
    return seen | {it: Observation.denied(why) for it, why in denied.items() if why and it not in there}


@hookimpl
def find(site: Site) -> Command:
    """Return the command that lists the user's jobs with their descriptions, which end with the tags."""
    return query(None, site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags."""
    # an element has the tag of its array
    jobs = ((job.description, array_of(job.name)) for job in _read(result, None, site).jobs)
    return ids_by_tag(jobs, tags)


def _read(result: CommandResult, native_ids: Sequence[str] | None, site: Site) -> _Answer:
    """Parse the output of a query for these jobs, or for all jobs if None.

    Raises:
        SubmitException: bjobs failed, or its output is incomplete.
    """
    read = _of_records if site.offers.get("json") else _of_histories
    answer = read(result)
    if answer is None or result.timed_out or result.returncode < 0:
        raise result.no_answer
    told = {job.name for job in answer.jobs}
    arrays = {array_of(name) for name in told if "[" in name}
    said = told.union(answer.denied)
    unsaid = [it for it in native_ids or () if it not in said and array_of(it) not in answer.denied]
    # bjobs prints nothing about a forgotten element if it was queried by its array
    is_needed = native_ids is None or bool(unsaid)
    if (is_needed and not answer.is_ended) or any(array_of(it) not in arrays for it in unsaid):
        raise result.no_answer
    return answer


def _of_records(result: CommandResult) -> _Answer | None:
    """Parse JSON output; it is complete if it parses. Return None if bjobs failed."""
    found = parse_records(result.stdout)
    complaints = _denied(result.stderr)
    if found is None:
        return _without_jobs(result, complaints)
    # many elements of an array have equal records
    meaning = functools.cache(observe_record)
    jobs = [
        _Listed(record_id(record), record["JOB_DESCRIPTION"], meaning(fields))
        for record in found
        if (fields := record_fields(record)) is not None
    ]
    errors = "\n".join(record["ERROR"] for record in found if "ERROR" in record)
    return _Answer(jobs, {**complaints, **_denied(errors)}, is_ended=True)


def _of_histories(result: CommandResult) -> _Answer | None:
    """Parse output in paragraphs; return None if bjobs failed or a paragraph is incomplete."""
    denied = _denied(result.stderr)
    told = parse_bjobs(result.stdout)
    if told is None or (result.returncode != 0 and not denied):
        return _without_jobs(result, denied)
    return _Answer(list(_listed(told)), denied, is_ended=told.is_ended)


def _listed(told: Histories) -> Iterator[_Listed]:
    of_many = functools.cache(functools.partial(observe_history, done_is_zero=False))
    for history in told.jobs:
        seen = of_many(attrs.evolve(history, name=""))
        yield _Listed(history.name, history.description, None if seen.final else seen)


def _without_jobs(result: CommandResult, denied: Mapping[str, str]) -> _Answer | None:
    """Return the answer that bjobs knows none of the jobs, or that there are none; else None."""
    is_denied = bool(denied) or _NO_JOB.search(result.stderr) is not None
    return _Answer([], denied, is_ended=True) if is_denied and not result.stdout.strip() else None


def _denied(said: str) -> dict[str, str]:
    """Return bjobs's message for each id that it does not know."""
    complaints = ((it[1], it[2] or it[3]) for it in _UNKNOWN_JOB.finditer(said))
    return {name: why for why, names in complaints for name in (list(named(names)) or [names])}
