"""Asking bjobs for the states of jobs and for jobs by their tag, and reading its answers.

Where LSF knows `bjobs -json`, that tells everything. Elsewhere, and before that was found out, `bjobs -l`
serves, which all versions have; but it does not tell why a job ended, and leaves that to bhist.

Each job that was asked about by its own id is told of, or bjobs says that it is not found: an answer in
which neither is said of one of them is not whole. Elements are asked about by their array. Those that LSF
has forgotten are not named; so they are missing only in an answer whose end is there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import tagged

from ..commands import lsf
from ..native_ids import array_of, named
from .json_listing import FIELDS, observe_record, parse_records, record_fields, record_id
from .long_listing import Histories, observe_history, parse_bjobs

# What bjobs says of a job; codes do not tell it from failures.
_UNKNOWN_JOB = re.compile(r"^(Job <(.+?)> is not found|(.+): Illegal job ID)\b", re.MULTILINE)
# What it says of all of them where there is none
_NO_JOB = re.compile(r"^No (?:unfinished |matching )?job found$", re.MULTILINE)


class _Listed(NamedTuple):
    """A job in an answer."""

    name: str
    description: str
    #: What it says of the job's state; None for nothing, or not enough.
    seen: Observation | None


class _Answer(NamedTuple):
    """What bjobs said."""

    jobs: Sequence[_Listed]
    #: What it said of ids that it does not know.
    denied: Mapping[str, str]
    #: Whether the end of the answer is there.
    is_ended: bool


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    form = ["-o", FIELDS, "-json"] if site.offers.get("json") else ["-l"]
    return lsf("bjobs", *form, *(["-a"] if native_ids is None else native_ids))


@hookimpl
def parse_status(
    result: CommandResult, native_ids: Sequence[str] | None, site: Site
) -> Mapping[str, Observation]:
    """What bjobs said about each job; of one that it does not know, that it is not found."""
    answer = _read(result, native_ids, site)
    seen = {job.name: job.seen for job in answer.jobs if job.seen is not None}
    there = {job.name for job in answer.jobs}
    denied = {it: answer.denied.get(it, answer.denied.get(array_of(it))) for it in native_ids or ()}
    return seen | {it: Observation.denied(why) for it, why in denied.items() if why and it not in there}


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their descriptions, at whose ends the tags are."""
    return query(None, site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """The native ids of the jobs that carry the tags."""
    # the tag of an element is its array's
    jobs = ((job.description, array_of(job.name)) for job in _read(result, None, site).jobs)
    return tagged(jobs, tags)


def _read(result: CommandResult, native_ids: Sequence[str] | None, site: Site) -> _Answer:
    """An answer about these jobs, or about all.

    Raises:
        SubmitException: it is none, or not whole.
    """
    read = _of_records if site.offers.get("json") else _of_histories
    answer = read(result)
    if answer is None or result.timed_out or result.returncode < 0:
        raise result.no_answer
    told = {job.name for job in answer.jobs}
    arrays = {array_of(name) for name in told if "[" in name}
    said = told.union(answer.denied)
    unsaid = [it for it in native_ids or () if it not in said and array_of(it) not in answer.denied]
    # of a forgotten element of an array nothing is said, if it was asked for by its array
    is_needed = native_ids is None or bool(unsaid)
    if (is_needed and not answer.is_ended) or any(array_of(it) not in arrays for it in unsaid):
        raise result.no_answer
    return answer


def _of_records(result: CommandResult) -> _Answer | None:
    """An answer in JSON, which ends where it ends."""
    found = parse_records(result.stdout)
    complaints = _denied(result.stderr)
    if found is None:
        return _without_jobs(result, complaints)
    # of many elements of an array the same is said
    meaning = functools.cache(observe_record)
    jobs = [
        _Listed(record_id(record), record["JOB_DESCRIPTION"], meaning(fields))
        for record in found
        if (fields := record_fields(record)) is not None
    ]
    errors = "\n".join(record["ERROR"] for record in found if "ERROR" in record)
    return _Answer(jobs, {**complaints, **_denied(errors)}, is_ended=True)


def _of_histories(result: CommandResult) -> _Answer | None:
    """An answer in paragraphs."""
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
    """An answer that says that it knows none of the jobs, or that there is none."""
    is_denied = bool(denied) or _NO_JOB.search(result.stderr) is not None
    return _Answer([], denied, is_ended=True) if is_denied and not result.stdout.strip() else None


def _denied(said: str) -> dict[str, str]:
    """The ids that bjobs says it does not know, and in which words."""
    complaints = ((it[1], it[2] or it[3]) for it in _UNKNOWN_JOB.finditer(said))
    return {name: why for why, names in complaints for name in (list(named(names)) or [names])}
