"""Asking `flux jobs` for the states of jobs and for jobs by their tag, and reading its answers.

Flux keeps ended jobs, with all that is known of them, until they are purged; what is purged is known nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, Site, SubmitException

from .commands import flux
from .ids import askable
from .observing import Job, observation

# For each job that is not known, with code 1 if none is, and 0 before Flux 0.80
_UNKNOWN = re.compile(r"^JobID \S+ unknown$", re.MULTILINE)
_SOME_ANSWER = frozenset({0, 1})
# All of the user's, however many and whatever their state: the default is 1000 that have not ended.
_ALL = ("-a", "-c0")


def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    which = _ALL if native_ids is None else askable(native_ids) or native_ids
    return flux(site, "jobs", "--json", *which)


def statuses(result: CommandResult, native_ids: Sequence[str] | None) -> dict[str, Observation]:
    """What Flux said about each job."""
    asked = None if native_ids is None else frozenset(native_ids)
    return {
        str(job["id"]): observation(job)
        for job in _listed(result)
        if asked is None or str(job["id"]) in asked
    }


def find(site: Site) -> Command:
    """The command that lists the user's jobs with their names, in which the tags are."""
    return flux(site, "jobs", "--json", *_ALL)


def tagged(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The ids of the jobs whose name is, or ends with, one of the tags."""
    sought = frozenset(tags)
    words = ((str(job.get("name", "")).split(), str(job["id"])) for job in _listed(result))
    return {name[-1]: native_id for name, native_id in words if name and name[-1] in sought}


def _listed(result: CommandResult) -> list[Job]:
    """The jobs in an answer.

    Raises:
        SubmitException: it is none.
    """
    answers = list(_objects(result.stdout))
    about_unknown = _UNKNOWN.search(result.stderr) is not None
    if result.timed_out or result.returncode not in _SOME_ANSWER or not (answers or about_unknown):
        result.checked()
        msg = f"flux jobs listed nothing: {result.complaint}"
        raise SubmitException(msg, transient=True)
    if not about_unknown:
        result.checked()
    return [job for answer in answers for job in _jobs(answer)]


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
    for job in listed if isinstance(listed, list) else ():
        if isinstance(job, dict) and type(job.get("id")) is int:
            yield job
