"""Asking bjobs for the states of jobs and for jobs by their tag, and reading its answers.

Where LSF knows `bjobs -json`, that tells everything. Elsewhere, and before that was found out, `bjobs -l`
serves, which all versions have; but it does not tell why a job ended, and leaves that to bhist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, JobState, Observation, Site, SubmitException

from . import histories, records
from .commands import lsf
from .ids import askable
from .probe import Offers

# What bjobs says besides, or instead of, an answer; codes do not tell these from failures.
_UNKNOWN_JOB = re.compile(
    r"^Job <.+> is not found$|^No (?:unfinished |matching )?job found|: Illegal job ID\.", re.MULTILINE
)


def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    return lsf("bjobs", *_form(site), *(["-a"] if native_ids is None else askable(native_ids) or native_ids))


def statuses(result: CommandResult, native_ids: Sequence[str] | None, site: Site) -> dict[str, Observation]:
    """What bjobs said about each job; one that it does not know is left out."""
    asked = None if native_ids is None else frozenset(native_ids)
    return {name: seen for name, seen in _seen(result, site) if asked is None or name in asked}


def find(site: Site) -> Command:
    """The command that lists the user's jobs with their descriptions, in which the tags are."""
    return lsf("bjobs", "-a", *_form(site))


def tagged(result: CommandResult, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    """The native ids of the jobs whose description is, or ends with, one of the tags.

    A submission that bsub has sent more than once has several jobs, of which the first is likely to run.
    """
    sought = frozenset(tags)
    found: dict[str, str] = {}
    for name, description in _described(result, site):
        words = description.split()
        if words and words[-1] in sought:
            found[words[-1]] = min(name, found.get(words[-1], name), key=_number)
    return found


def _number(native_id: str) -> int:
    return int(native_id.partition("[")[0])


def _form(site: Site) -> list[str]:
    return ["-o", records.FIELDS, "-json"] if Offers.of(site).json else ["-l"]


def _seen(result: CommandResult, site: Site) -> Iterator[tuple[str, Observation]]:
    if Offers.of(site).json:
        for record in _records(result):
            if "STAT" in record:
                yield records.name(record), records.observation(record)
        return
    for history in _histories(result):
        observation = histories.observation(history, done_is_zero=False)
        if observation.state not in {JobState.COMPLETED, JobState.FAILED, JobState.CANCELED}:
            yield history.name, observation


def _described(result: CommandResult, site: Site) -> Iterator[tuple[str, str]]:
    if Offers.of(site).json:
        for record in _records(result):
            yield records.name(record), record.get("JOB_DESCRIPTION", "")
        return
    for history in _histories(result):
        yield history.name, history.description


def _records(result: CommandResult) -> list[records.Record]:
    found = records.records(result.stdout)
    if found is None:
        _check_unknown(result)
    return found or []


def _histories(result: CommandResult) -> list[histories.History]:
    found = histories.histories(result.stdout)
    if not found or result.returncode != 0:
        _check_unknown(result)
    return found


def _check_unknown(result: CommandResult) -> None:
    """See that an answer lacks what it lacks because bjobs does not know the jobs.

    Raises:
        SubmitException: it was no answer.
    """
    if result.returncode < 0 or not _UNKNOWN_JOB.search(result.stderr):
        msg = f"bjobs gave no answer: {result.complaint}"
        raise SubmitException(msg, transient=True)
