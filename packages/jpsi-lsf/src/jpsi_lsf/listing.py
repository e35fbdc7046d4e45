"""Asking bjobs for the states of jobs and for jobs by their tag, and reading its answers.

Where LSF knows `bjobs -json`, that tells everything. Elsewhere, and before that was found out, `bjobs -l`
serves, which all versions have; but it does not tell why a job ended, and leaves that to bhist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl, tagged

from . import histories, records
from .commands import lsf

# What bjobs says besides, or instead of, an answer; codes do not tell these from failures.
_UNKNOWN_JOB = re.compile(
    r"^Job <.+> is not found$|^No (?:unfinished |matching )?job found|: Illegal job ID\.", re.MULTILINE
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
def parse_status(result: CommandResult, site: Site) -> Mapping[str, Observation]:
    """What bjobs said about each job; one that it does not know is left out."""
    return {job.name: job.seen for job in _listed(result, site) if job.seen is not None}


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their descriptions, at whose ends the tags are."""
    return query(None, site)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """The native ids of the jobs that carry the tags."""
    return tagged(((job.description, job.name) for job in _listed(result, site)), tags)


def _listed(result: CommandResult, site: Site) -> Iterator[_Listed]:
    """The jobs in an answer.

    Raises:
        SubmitException: it is none.
    """
    if site.offers.get("json"):
        found = records.records(result.stdout)
        _check(result, is_whole=found is not None)
        for record in found or ():
            seen = records.observation(record) if "STAT" in record else None
            yield _Listed(records.name(record), record.get("JOB_DESCRIPTION", ""), seen)
        return
    told = histories.histories(result.stdout)
    _check(result, is_whole=bool(told) and result.returncode == 0)
    for history in told:
        seen = histories.observation(history, done_is_zero=False)
        yield _Listed(history.name, history.description, None if seen.final else seen)


def _check(result: CommandResult, *, is_whole: bool) -> None:
    """See that an answer lacks what it lacks because bjobs does not know the jobs."""
    if not is_whole and (result.returncode < 0 or not _UNKNOWN_JOB.search(result.stderr)):
        raise result.no_answer
