"""Parses the paragraphs of `bjobs -l` and `bhist -l`, which every version of LSF prints.

`bhist` uses it, and so does `bjobs` where LSF cannot print JSON.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from datetime import datetime

import attrs

from jpsi.plugin import Observation
from jpsi.plugin.kit import is_nearly, parse_time

from .observations import End, is_termination, job_tag, make_observation, nodes
from .paragraphs import BHIST_FORM, BJOBS_FORM, EMBEDDED_EVENT, EVENT, Listing, Paragraph, split_paragraphs

_STATUS = re.compile(r", Status <([A-Z_]+)>")
_DESCRIPTION = re.compile(r", Job Description <([^<>]*)>")
_REASONS = re.compile(r"^ PENDING REASONS:\n((?: .*\S.*\n?)+)", re.MULTILINE)
# A line with the titles of one or more limits, and the line after it with their amounts; the number of
# processes has no unit.
_AMOUNT = re.compile(r" +(\d+(?:\.\d+)?)(?: (min|[KMGTP])\b)?(?: of \S+)?")
_LIMITS = re.compile(rf"^((?: +[A-Z]*LIMIT)+) *\n((?:{_AMOUNT.pattern})+) *$", re.MULTILINE)
# A title without amounts, or an amount without a title
_PART_OF_LIMITS = re.compile(r"^ .*LIMIT|^ +[\d.]+ (?:min|[KMGTP])\b", re.MULTILINE)
_RUN_LIMIT = "RUNLIMIT"

# The texts of events, from volclava 2.2 and, as far as published output shows them, from LSF 10.1
_STARTED = re.compile(r"(?:\[\d+\] )?(?:[Ss]tarted|Dispatched)\b[^<]*((?:<[^<>]+> ?)+)")
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
_TERMINATION = re.compile(r"TERM_[A-Z_]+[^;.]*")
_TERMINATED = re.compile(r"Completed <exit>(?:; ([^:;]*))?")
_SIGNAL_BASE = 128
# The beginnings of events that change a state
_CHANGES = {
    "Done": _DONE,
    "Exited": _EXITED,
    "Signal": _SIGNAL,
    "Dispatched": _STARTED,
    "Pending": _PENDING,
    "sbatchd": _EXITED,
}
# The beginnings of all known events
_EVENT_WORDS = frozenset({*_CHANGES, "Started", "Completed", "Running", "Starting"})


@attrs.frozen(slots=True, kw_only=True)
class History:
    """The history of one job."""

    #: The native id.
    name: str
    #: The state in bjobs's output; None for bhist, which does not print it.
    lsf_state: str | None
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
    #: The run limit in seconds.
    limit: float | None
    #: The seconds that the job has run; None for bjobs, which does not print them.
    run_time: float | None


def parse_bjobs(output: str) -> Listing[History] | None:
    """Return the jobs in the output of `bjobs -l`, in order; None if one of them is incomplete."""
    return _parse_histories(split_paragraphs(output, BJOBS_FORM), is_bjobs=True)


def parse_bhist(output: str) -> Listing[History] | None:
    """Return the jobs in the output of `bhist -l`, in order; None if one of them is incomplete."""
    return _parse_histories(split_paragraphs(output, BHIST_FORM), is_bjobs=False)


def _parse_histories(listing: Listing[Paragraph] | None, *, is_bjobs: bool) -> Listing[History] | None:
    found = [_parse_history(paragraph, is_bjobs=is_bjobs) for paragraph in (listing.parts if listing else ())]
    jobs = [history for history in found if history is not None]
    return Listing(jobs, listing.is_ended) if listing and len(jobs) == len(found) else None


def _parse_history(paragraph: Paragraph, *, is_bjobs: bool) -> History | None:
    """Return the history in one paragraph; None if a part of it looks corrupt."""
    status, reasons = _STATUS.search(paragraph.head), _REASONS.search(paragraph.body)
    events = EVENT.findall(paragraph.body)
    texts = tuple(text for _, text in events)
    is_valid = status is not None if is_bjobs else events and not _is_corrupt(texts, paragraph.body)
    if not is_valid:
        return None
    descriptions = _DESCRIPTION.findall(paragraph.head)
    text_before = paragraph.head.rpartition(", Job Description <")[0] if descriptions else paragraph.head
    run_time = paragraph.closing.groupdict().get("run_time")
    return History(
        name=paragraph.name,
        lsf_state=status[1] if status and is_bjobs else None,
        description=descriptions[-1] if descriptions else "",
        tag=job_tag(descriptions[-1] if descriptions else "", text_before),
        submitted=_submit_time(events),
        pending="; ".join(line.strip(" ;") for line in reasons[1].splitlines()) if reasons else "",
        events=texts,
        limit=_run_limit_seconds(paragraph.body),
        run_time=None if run_time is None else float(run_time),
    )


def _is_corrupt(events: Sequence[str], body: str) -> bool:
    """Return True if an event or a limit nearly but not exactly matches LSF's text."""
    return any(map(_is_corrupt_event, events)) or _are_limits_corrupt(body)


def _are_limits_corrupt(body: str) -> bool:
    lines = _limits(body)
    return (
        _PART_OF_LIMITS.search(_LIMITS.sub("", body)) is not None
        or any(len(titles) != len(amounts) for titles, amounts in lines)
        or any(_RUN_LIMIT in titles for titles, _ in lines) is (_run_limit_seconds(body) is None)
    )


def _run_limit_seconds(body: str) -> float | None:
    """Return the run limit in seconds; None if there is none."""
    for titles, amounts in _limits(body):
        for title, (amount, unit) in zip(titles, amounts, strict=False):
            if title == _RUN_LIMIT and unit == "min":
                return 60 * float(amount)
    return None


def _limits(body: str) -> list[tuple[list[str], list[tuple[str, str]]]]:
    """Return the titles in each line of limits, with their amounts and units."""
    return [(lines[1].split(), _AMOUNT.findall(lines[2])) for lines in _LIMITS.finditer(body)]


def _is_corrupt_event(text: str) -> bool:
    return (
        not text.rstrip().endswith((";", "."))
        or EMBEDDED_EVENT.search(text) is not None
        or any(is_nearly(text[: len(beginning)], [beginning]) for beginning in _EVENT_WORDS)
        or any(
            text.startswith(beginning) and not pattern.match(text) for beginning, pattern in _CHANGES.items()
        )
        or any(not is_termination(exit_code) for exit_code in _TERMINATED.findall(text) if exit_code)
    )


def _submit_time(events: Sequence[tuple[str, str]]) -> datetime | None:
    """Return the time of the first event; None if LSF leaves out the year, as it does at most sites."""
    return next(
        (parse_time(timestamp) for timestamp, text in events[:1] if text.startswith("Submitted")), None
    )


@attrs.frozen(slots=True, kw_only=True)
class _RunState:
    """The state of a job after some of its events."""

    lsf_state: str = "PEND"
    #: The nodes on which the job runs or ran, as LSF prints them.
    nodes_text: str = ""
    exit_code: int | None = None
    termination: str = ""
    killed_by: str | None = None
    #: True if LSF ends the job in order to requeue it.
    is_requeued: bool = False
    restarts: int = 0


def _apply_event(run: _RunState, event: str) -> _RunState:
    """Return the state after one more event."""
    if termination := _TERMINATION.search(event):
        run = attrs.evolve(run, termination=termination[0].strip())
    if nodes_text := _STARTED.match(event):
        return attrs.evolve(run, lsf_state="RUN", nodes_text=nodes_text[1])
    signal = _SIGNAL.match(event)
    if signal and _KILL.fullmatch(signal[1]):
        is_requeued = signal[1] != "KILL"
        return attrs.evolve(run, is_requeued=is_requeued, killed_by=None if is_requeued else signal[2])
    if _PENDING.match(event):
        return _RunState(restarts=run.restarts + bool(_REQUEUED.match(event)))
    if _DONE.match(event):
        return attrs.evolve(run, lsf_state="DONE")
    if exited := _EXITED.match(event):
        return attrs.evolve(
            run, lsf_state="PEND" if run.is_requeued else "EXIT", exit_code=_exit_code(exited)
        )
    return run


def _exit_code(exited: re.Match[str]) -> int | None:
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
    run = functools.reduce(_apply_event, history.events, _RunState())
    lsf_state = run.lsf_state if history.lsf_state is None else history.lsf_state
    # LSF 10 reports a timeout itself, and its limits can be normalized minutes of another machine.
    is_over_limit = (
        not done_is_zero
        and run.restarts == 0
        and history.limit is not None
        and history.run_time is not None
        and 0 < history.limit <= history.run_time
    )
    exit_code = 0 if lsf_state == "DONE" and done_is_zero else run.exit_code
    observation = make_observation(
        lsf_state,
        pending=history.pending,
        end=End(exit_code, run.termination, run.killed_by, is_over_limit),
        ran_on=nodes(":".join(re.findall(r"<([^<>]+)>", run.nodes_text))),
        restarts=run.restarts if history.lsf_state is None else None,
    )
    return attrs.evolve(observation, tag=history.tag, submitted=history.submitted)
