"""Asking `flux jobs` for the states of jobs and for jobs by their tag, and reading its answers.

Flux keeps ended jobs, with all that is known of them, until they are purged; what is purged is known nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl, tagged

from .commands import command
from .observing import Job, observation

# For each job that is not known, with code 1 if none is, and 0 before Flux 0.80
_UNKNOWN = re.compile(r"^JobID \S+ unknown$", re.MULTILINE)
_SOME_ANSWER = frozenset({0, 1})
# One that could not be looked up, which is otherwise left out like one that is not known
_FAILED = re.compile(r"^rpc: ", re.MULTILINE)
# All of the user's, however many and whatever their state: the default is 1000 that have not ended.
_ALL = ("-a", "-c0")
# Of those that have ended, those of the last day: others have begun, which their claim tells.
_RECENT = ("--since=-1d", "-c0")


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    return command(site, "flux", "jobs", "--json", *(_ALL if native_ids is None else native_ids))


@hookimpl
def parse_status(result: CommandResult) -> Mapping[str, Observation]:
    """What Flux said about each job."""
    return {str(job["id"]): _fenced(job) for job in _listed(result)}


def _fenced(job: Job) -> Observation:
    try:
        return observation(job)
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        # One odd job keeps its state, and costs no other its own.
        return Observation(state=None, word=str(job.get("status", "")))


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their names, at whose ends the tags are."""
    return command(site, "flux", "jobs", "--json", *_RECENT)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The ids of the jobs that carry the tags."""
    return tagged(((str(job.get("name", "")), str(job["id"])) for job in _listed(result)), tags)


def _listed(result: CommandResult) -> list[Job]:
    """The jobs in an answer.

    Raises:
        SubmitException: it is none.
    """
    answers = list(_objects(result.stdout))
    about_unknown = _UNKNOWN.search(result.stderr) is not None
    is_answer = result.returncode in _SOME_ANSWER and (answers or about_unknown)
    if result.timed_out or not is_answer or _FAILED.search(result.stderr):
        raise result.checked().no_answer
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
