"""Queries bjobs for the states of jobs and for jobs by tag, and parses its output.

If LSF knows `bjobs -json`, its output has everything. Otherwise, and before the probe, jpsi uses `bjobs -l`,
which all versions have; it does not say why a job ended, so that bhist must be queried for that.

For each queried job, bjobs prints the job or that it is not found; output that lacks both is incomplete.
Array elements are queried by their array, and bjobs does not print elements that LSF has forgotten. An
element therefore counts as missing only if the end of the output has arrived. Output that was cut after an
element looks as if it had; so jpsi queries a missing element alone before it counts as lost, and bjobs must
print it or that it is not found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import ids_by_tag

from ..commands import lsf_command
from ..native_ids import array_of, expand_ids, is_lone_element
from .json_listing import FIELDS, observe_record, observed_fields, parse_records, record_id
from .long_listing import observe_history, parse_bjobs

# bjobs's message about an unknown job; its exit code is the same as for failures.
_UNKNOWN_JOB = re.compile(r"^(Job <(.+?)> is not found|(.+): Illegal job ID)\b", re.MULTILINE)
# bjobs's message if there are no jobs at all
_NO_JOB = re.compile(r"^No (?:unfinished |matching )?job found$", re.MULTILINE)


class _ListedJob(NamedTuple):
    """A job in bjobs's output."""

    name: str
    description: str
    #: The job's Observation; None if the output does not say enough.
    observation: Observation | None


class _Listing(NamedTuple):
    """The parsed output of bjobs."""

    jobs: Sequence[_ListedJob]
    #: bjobs's messages about unknown ids.
    unknown: Mapping[str, str]
    #: True if the end of the output has arrived.
    is_ended: bool


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the bjobs command for these jobs, or for all jobs of the user if None."""
    form = ["-o", FIELDS, "-json"] if site.offers.get("json") else ["-l"]
    return lsf_command("bjobs", *form, *(["-a"] if native_ids is None else native_ids))


@hookimpl
def parse_status(
    result: CommandResult, native_ids: Sequence[str] | None, site: Site
) -> Mapping[str, Observation]:
    """Return an Observation of each job in bjobs's output, including those that bjobs does not know."""
    listing = _parse_listing(result, native_ids, site)
    observations = {job.name: job.observation for job in listing.jobs if job.observation is not None}
    listed = {job.name for job in listing.jobs}
    unknown = {
        native_id: listing.unknown.get(native_id, listing.unknown.get(array_of(native_id)))
        for native_id in native_ids or ()
    }
    return observations | {
        native_id: Observation.denied(message)
        for native_id, message in unknown.items()
        if message and native_id not in listed
    }


@hookimpl
def find(site: Site) -> Command:
    """Return the command that lists the user's jobs with their descriptions, which end with the tags."""
    return query(None, site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags."""
    # an element has the tag of its array
    jobs = ((job.description, array_of(job.name)) for job in _parse_listing(result, None, site).jobs)
    return ids_by_tag(jobs, tags)


def _parse_listing(result: CommandResult, native_ids: Sequence[str] | None, site: Site) -> _Listing:
    """Parse the output of a query for these jobs, or for all jobs if None.

    Raises:
        SubmitException: bjobs failed, or its output is incomplete.
    """
    parse = _parse_json_listing if site.offers.get("json") else _parse_long_listing
    listing = parse(result)
    if listing is None or result.timed_out or result.returncode < 0:
        raise result.no_answer
    listed = {job.name for job in listing.jobs}
    arrays = {array_of(name) for name in listed if "[" in name}
    reported = listed.union(listing.unknown)
    unreported = [
        native_id
        for native_id in native_ids or ()
        if native_id not in reported and array_of(native_id) not in listing.unknown
    ]
    # bjobs prints nothing about a forgotten element if it was queried by its array, and not alone
    is_alone = is_lone_element(native_ids or ())
    must_be_whole = native_ids is None or bool(unreported)
    if (must_be_whole and not listing.is_ended) or any(
        is_alone or array_of(native_id) not in arrays for native_id in unreported
    ):
        raise result.no_answer
    return listing


def _parse_json_listing(result: CommandResult) -> _Listing | None:
    """Parse JSON output; it is complete if it parses. Return None if bjobs failed."""
    records = parse_records(result.stdout)
    unknown = _parse_unknown_ids(result.stderr)
    if records is None:
        return _empty_listing(result, unknown)
    # many elements of an array have equal records
    observe = functools.cache(observe_record)
    jobs = [
        _ListedJob(record_id(record), record["JOB_DESCRIPTION"], observe(observed_fields(record)))
        for record in records
        if "STAT" in record
    ]
    errors = "\n".join(record["ERROR"] for record in records if "ERROR" in record)
    return _Listing(jobs, {**unknown, **_parse_unknown_ids(errors)}, is_ended=True)


def _parse_long_listing(result: CommandResult) -> _Listing | None:
    """Parse output in paragraphs; return None if bjobs failed or a paragraph is incomplete."""
    unknown = _parse_unknown_ids(result.stderr)
    listing = parse_bjobs(result.stdout)
    if listing is None or (result.returncode != 0 and not unknown):
        return _empty_listing(result, unknown)
    observe = functools.cache(functools.partial(observe_history, done_is_zero=False))
    jobs = []
    for history in listing.parts:
        observation = observe(attrs.evolve(history, name=""))
        jobs.append(_ListedJob(history.name, history.description, None if observation.final else observation))
    return _Listing(jobs, unknown, listing.is_ended)


def _empty_listing(result: CommandResult, unknown: Mapping[str, str]) -> _Listing | None:
    """Return the answer that bjobs knows none of the jobs, or that there are none; else None."""
    is_empty = bool(unknown) or _NO_JOB.search(result.stderr) is not None
    return _Listing([], unknown, is_ended=True) if is_empty and not result.stdout.strip() else None


def _parse_unknown_ids(text: str) -> dict[str, str]:
    """Return bjobs's message for each id that it does not know."""
    messages = ((match[1], match[2] or match[3]) for match in _UNKNOWN_JOB.finditer(text))
    return {name: message for message, names in messages for name in expand_ids(names) or [names]}
