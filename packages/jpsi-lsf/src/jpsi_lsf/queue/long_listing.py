"""Parses the paragraphs of `bjobs -l` and `bhist -l`, which every version of LSF prints."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import datetime

import attrs

from jpsi.plugin import Observation
from jpsi.plugin.kit import parse_time

from .corruption import is_nearly, tag_of
from .observations import End, is_termination, nodes, observed
from .paragraphs import ANOTHER, EVENT, OF_BHIST, OF_BJOBS, Form, Paragraph, paragraphs

_STATUS = re.compile(r", Status <([A-Z_]+)>")
_DESCRIPTION = re.compile(r", Job Description <([^<>]*)>")
_REASONS = re.compile(r"^ PENDING REASONS:\n((?: .*\S.*\n?)+)", re.MULTILINE)
_LIMIT = re.compile(r"^ RUNLIMIT\s*\n\s*([\d.]+) min", re.MULTILINE)
# The titles of limits, and their values in the line below
_TITLES = re.compile(r"^(?: [A-Z]*LIMIT *)+$", re.MULTILINE)
_LIMITS = re.compile(r"^ .*LIMIT.*$", re.MULTILINE)
_AMOUNTS = re.compile(r"^ +[\d.]+ (?:min|[KMGTP])\b.*$", re.MULTILINE)

# The texts of events, from volclava 2.2 and, as far as published output shows them, from LSF 10.1
_PLACED = re.compile(r"(?:\[\d+\] )?(?:[Ss]tarted|Dispatched)\b[^<]*((?:<[^<>]+> ?)+)")
_PENDING = re.compile(r"Pending:|Requeue")
_REQUEUED = re.compile(r"Pending: *(?:Job has been requeued|Requeued job)|Requeue")
# Signals that do not match _KILL do not end the job.
_SIGNAL = re.compile(r"Signal <([A-Z0-9_+-]+)> requested by user or administrator *<([^<>]+)>")
_KILL = re.compile(r"KILL|REQUEUE\w*")
_DONE = re.compile(r"Done successfully")
_EXITED = re.compile(
    r"Exited(?: with exit code (\d+)| by (?:LSF )?signal (?:(\d+)|[A-Z]+[0-9]?))?(?:[.;,]|\Z)"
    r"|Exited [a-z][a-z -]*[.;]|.*kill ZOMBIE job"
)
_WHY = re.compile(r"TERM_[A-Z_]+[^;.]*")
_TERMINATED = re.compile(r"Completed <exit>(?:; ([^:;]*))?")
_SIGNAL_BASE = 128
# The beginnings of events that change a state; below, with those of the other known events.
_CHANGES = {
    "Done": _DONE,
    "Exited": _EXITED,
    "Signal": _SIGNAL,
    "Dispatched": _PLACED,
    "Pending": _PENDING,
    "sbatchd": _EXITED,
}
_BEGINNINGS = frozenset({*_CHANGES, "Started", "Completed", "Running", "Starting"})


@attrs.frozen(slots=True, kw_only=True)
class History:
    """The history of one job."""

    #: The native id.
    name: str
    #: The state in bjobs's output; None for bhist, which does not print it.
    word: str | None
    #: The job's description.
    description: str
    #: The tag in the description; None if it is uncertain.
    tag: str | None
    #: The time of submission; None if LSF does not print the year.
    submitted: datetime | None
    #: The reasons why the job is pending.
    pending: str
    #: The job's events, in order.
    events: tuple[str, ...]
    #: The run limit in seconds; below, the seconds that the job has run.
    limit: float | None
    run_time: float | None


@attrs.frozen(slots=True, kw_only=True)
class Histories:
    """The jobs in the output of bjobs or bhist."""

    jobs: tuple[History, ...]
    #: True if the end of the output has arrived, so that no other job can follow.
    is_ended: bool


def parse_bjobs(output: str) -> Histories | None:
    """Return the jobs in the output of `bjobs -l`, in order; None if one of them is incomplete."""
    return _histories(output, OF_BJOBS)


def parse_bhist(output: str) -> Histories | None:
    """Return the jobs in the output of `bhist -l`, in order; None if one of them is incomplete."""
    return _histories(output, OF_BHIST)


def _histories(output: str, form: Form) -> Histories | None:
    answer = paragraphs(output, form)
    if answer is None:
        return None
    found = [_history(it, has_word=form is OF_BJOBS) for it in answer.found]
    jobs = [it for it in found if it is not None]
    return Histories(jobs=tuple(jobs), is_ended=answer.is_ended) if len(jobs) == len(found) else None


def _history(told: Paragraph, *, has_word: bool) -> History | None:
    """Return the history in one paragraph; None if a part of it looks corrupt."""
    status, reasons = _STATUS.search(told.head), _REASONS.search(told.body)
    limit, events = _LIMIT.search(told.body), EVENT.findall(told.body)
    texts = tuple(text for _, text in events)
    is_clear = status is not None if has_word else events and not _is_damaged(texts, told.body)
    if not is_clear:
        return None
    descriptions = _DESCRIPTION.findall(told.head)
    before = told.head.rpartition(", Job Description <")[0] if descriptions else told.head
    run_time = told.closing.groupdict().get("run_time")
    return History(
        name=told.name,
        word=status[1] if status and has_word else None,
        description=descriptions[-1] if descriptions else "",
        tag=tag_of(descriptions[-1] if descriptions else "", before),
        submitted=_submitted(events),
        pending="; ".join(line.strip(" ;") for line in reasons[1].splitlines()) if reasons else "",
        events=texts,
        limit=60 * float(limit[1]) if limit else None,
        run_time=None if run_time is None else float(run_time),
    )


def _is_damaged(events: Sequence[str], body: str) -> bool:
    """Return True if an event or the limit nearly but not exactly matches LSF's text."""
    titles, amounts = _TITLES.findall(body), _AMOUNTS.findall(body)
    return (
        any(map(_is_damaged_event, events))
        or not len(titles) == len(amounts) == len(_LIMITS.findall(body))
        or ("RUNLIMIT" in " ".join(titles) and not _LIMIT.search(body))
    )


def _is_damaged_event(text: str) -> bool:
    return (
        not text.rstrip().endswith((";", "."))
        or ANOTHER.search(text) is not None
        or any(is_nearly(text[: len(it)], [it]) for it in _BEGINNINGS)
        or any(text.startswith(it) and not pattern.match(text) for it, pattern in _CHANGES.items())
        or any(not is_termination(code) for code in _TERMINATED.findall(text) if code)
    )


def _submitted(events: Sequence[tuple[str, str]]) -> datetime | None:
    """Return the time of the first event; None if LSF leaves out the year, as it does at most sites."""
    return next((parse_time(at) for at, text in events[:1] if text.startswith("Submitted")), None)


@attrs.frozen(slots=True, kw_only=True)
class _Past:
    """The state of a job after some of its events."""

    word: str = "PEND"
    #: The nodes on which the job runs or ran, as LSF prints them.
    placed: str = ""
    exit_code: int | None = None
    why: str = ""
    killed_by: str | None = None
    #: True if LSF ends the job in order to requeue it.
    is_put_back: bool = False
    restarts: int = 0


def _after(past: _Past, event: str) -> _Past:
    """Return the state after one more event."""
    if why := _WHY.search(event):
        past = attrs.evolve(past, why=why[0].strip())
    if placed := _PLACED.match(event):
        return attrs.evolve(past, word="RUN", placed=placed[1])
    killed = _SIGNAL.match(event)
    if killed and _KILL.fullmatch(killed[1]):
        is_put_back = killed[1] != "KILL"
        return attrs.evolve(past, is_put_back=is_put_back, killed_by=None if is_put_back else killed[2])
    if _PENDING.match(event):
        return _Past(restarts=past.restarts + bool(_REQUEUED.match(event)))
    if _DONE.match(event):
        return attrs.evolve(past, word="DONE")
    if exited := _EXITED.match(event):
        return attrs.evolve(past, word="PEND" if past.is_put_back else "EXIT", exit_code=_code(exited))
    return past


def _code(exited: re.Match[str]) -> int | None:
    if exited[2]:
        return _SIGNAL_BASE + int(exited[2])
    return int(exited[1]) if exited[1] else None


def observe_history(history: History, *, done_is_zero: bool) -> Observation:
    """Return the Observation for a job's history.

    Args:
        history: the job's history.
        done_is_zero: True if `Done successfully` means exit code 0. Systems compatible with old versions of
            LSF have been seen to print it for killed jobs.
    """
    past = functools.reduce(_after, history.events, _Past())
    word = past.word if history.word is None else history.word
    # LSF 10 reports a timeout itself, and its limits can be normalized minutes of another machine.
    is_overtime = (
        not done_is_zero
        and past.restarts == 0
        and history.limit is not None
        and history.run_time is not None
        and 0 < history.limit <= history.run_time
    )
    code = past.exit_code
    seen = observed(
        word,
        pending=history.pending,
        end=End(0 if word == "DONE" and done_is_zero else code, past.why, past.killed_by, is_overtime),
        ran_on=nodes(":".join(re.findall(r"<([^<>]+)>", past.placed))),
        restarts=past.restarts if history.word is None else None,
    )
    return attrs.evolve(seen, tag=history.tag, submitted=history.submitted)
