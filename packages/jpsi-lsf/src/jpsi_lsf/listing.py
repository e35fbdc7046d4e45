"""Asking bjobs for the states of jobs and for jobs by their tag, and reading its answers.

Where LSF knows `bjobs -json`, that tells everything. Elsewhere, and before that was found out, `bjobs -l`
serves, which all versions have; but it does not tell why a job ended, and leaves that to bhist.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl, tagged

from . import histories, records
from .commands import lsf
from .ids import array_of

# What bjobs says of a job, or of all, besides an answer or instead of it; codes do not tell it from failures.
_UNKNOWN_JOB = re.compile(
    r"^Job <(.+?)> is not found|^(.+): Illegal job ID\.|^No (?:unfinished |matching )?job found", re.MULTILINE
)


class _Listed(NamedTuple):
    """A job in an answer."""

    name: str
    description: str
    #: What it says of the job's state; None for nothing, or not enough.
    seen: Observation | None


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    form = ["-o", records.FIELDS, "-json"] if site.offers.get("json") else ["-l"]
    return lsf("bjobs", *form, *(["-a"] if native_ids is None else native_ids))


@hookimpl
def parse_status(
    result: CommandResult, native_ids: Sequence[str] | None, site: Site
) -> Mapping[str, Observation]:
    """What bjobs said about each job; one that it does not know is left out."""
    jobs = _listed(result, native_ids or (), site)
    return {job.name: job.seen for job in jobs if job.seen is not None}


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their descriptions, at whose ends the tags are."""
    return query(None, site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """The native ids of the jobs that carry the tags."""
    # the tag of an element is its array's
    jobs = ((job.description, array_of(job.name)) for job in _listed(result, (), site))
    return tagged(jobs, tags)


def _listed(result: CommandResult, native_ids: Sequence[str], site: Site) -> Iterator[_Listed]:
    """The jobs in an answer about these, or about all.

    Raises:
        SubmitException: it is none.
    """
    if site.offers.get("json"):
        found = records.records(result.stdout)
        _check(result, native_ids if found is None else (), is_whole=found is not None)
        # of many elements of an array the same is said
        meaning = functools.cache(records.observation)
        for record in found or ():
            said = records.said(record)
            seen = None if said is None else meaning(said)
            yield _Listed(records.name(record), record.get("JOB_DESCRIPTION", ""), seen)
        return
    told = histories.histories(result.stdout)
    # what is told of an array tells of all elements that there are
    names = {array_of(it.name) for it in told}
    unsaid = {array_of(native_id) for native_id in native_ids} - names
    _check(result, unsaid, is_whole=bool(told) and result.returncode == 0)
    of_many = functools.cache(functools.partial(histories.observation, done_is_zero=False))
    for history in told:
        seen = of_many(attrs.evolve(history, name=""))
        yield _Listed(history.name, history.description, None if seen.final else seen)


def _check(result: CommandResult, unsaid: Iterable[str], *, is_whole: bool) -> None:
    """See that an answer lacks jobs, such as these, only as bjobs says of each that it does not know it."""
    complaints = list(_UNKNOWN_JOB.finditer(result.stderr))
    unknown = {array_of(it[1] or it[2] or "") for it in complaints}
    has_answered = is_whole or (bool(complaints) and result.returncode >= 0)
    if not has_answered or not unknown.issuperset(unsaid):
        raise result.no_answer
