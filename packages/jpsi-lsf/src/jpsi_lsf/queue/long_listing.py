"""Parses the paragraphs of `bjobs -l` and `bhist -l`, which every version of LSF prints, and queries bhist.

`bjobs` uses it where LSF cannot print JSON. bhist is queried for jobs that bjobs has forgotten or does not
explain. It silently leaves out unknown jobs if it knows any other of the queried jobs. A job therefore counts
as missing only if the end of the output has arrived, or if it was queried alone.

The output does not announce its end. But each paragraph ends with a known section: the scheduling parameters
in bjobs, and the summary in bhist. A line of dashes separates paragraphs, and an empty line follows the last
one. This was measured on volclava 2.2, whose formats are those of LSF since version 8. It is not known
whether LSF 10.1 prints the empty line; it is not needed if each queried job is in the output.

The checks miss these errors: output that was cut after a paragraph and then got an empty line; a history that
lacks a line, such as that of a signal; and a letter or digit that was changed into another one in text that
the output has only once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import is_nearly, parse_time

from ..commands import lsf_command
from ..config import UNITS
from ..native_ids import ID_PATTERN, is_lone_element
from .observations import End, is_termination, job_tag, make_observation, nodes

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
_CPU_TIME = re.compile(r"The CPU time used is ([0-9.]+) seconds")
_MAX_MEMORY = re.compile(r"^ ?MAX MEM: ([0-9.]+) ([KMGT])bytes", re.MULTILINE)
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
    #: The CPU time and the memory that it used, as far as LSF prints them.
    used: tuple[tuple[str, float], ...] = ()


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
        used=tuple(_usage(texts, paragraph.body).items()),
    )


def _usage(events: Sequence[str], body: str) -> dict[str, float]:
    """Return the seconds of CPU time and the bytes of memory; a zero stands for what was not measured.

    bhist(1), MEMORY USAGE and Done; of a job that ran several times, the last run counts.
    """
    times = [it[1] for event in events if (it := _CPU_TIME.search(event))]
    memory = _MAX_MEMORY.search(body)
    used = {
        "used.cpu": float(times[-1]) if times else 0.0,
        "used.memory": 0 if memory is None else int(float(memory[1]) * UNITS[f"{memory[2]}B"]),
    }
    return {name: amount for name, amount in used.items() if amount}


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
    details = {**observation.details, **(dict(history.used) if observation.final else {})}
    return attrs.evolve(observation, tag=history.tag, submitted=history.submitted, details=details)


Part = TypeVar("Part")

# LSF wraps lines after 80 characters, even within words, and continues them after 21 blanks.
_FOLD = re.compile(r"\n {21}")
_SEPARATOR = re.compile(r"^-{78}\n", re.MULTILINE)
_HEAD = re.compile(rf"^Job <({ID_PATTERN})>(,.*)\n", re.MULTILINE)
_TIMESTAMP = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d(?: \d{4})?"
#: The time of an event within the text of another: the line break between them is missing.
EMBEDDED_EVENT = re.compile(rf"{_TIMESTAMP}: ")
#: An event: its time and its text.
EVENT = re.compile(rf"^({_TIMESTAMP}): (.*)$", re.MULTILINE)


@attrs.frozen(slots=True, kw_only=True)
class Form:
    """The form of the paragraphs of one command."""

    #: The section that each paragraph has once, after everything that is parsed.
    closing: re.Pattern[str]
    #: The end of the last paragraph.
    end: re.Pattern[str]
    #: The form of lines that are no events; None allows any line.
    other: re.Pattern[str] | None = None


#: `bjobs -l`: below the first line, only the state and the pending reasons are parsed.
BJOBS_FORM = Form(
    closing=re.compile(r"^ SCHEDULING PARAMETERS:\n", re.MULTILINE),
    end=re.compile(
        r"^ RESOURCE REQUIREMENT DETAILS:\n Combined: .*\n Effective: (?s:.*)\n\n\Z", re.MULTILINE
    ),
)
#: `bhist -l`: the state follows from the events, so that none may be missed. Other lines are indented, or are
#: the titles and figures of MEMORY USAGE, CPU USAGE and others, which LSF 10.1 prints at the end.
BHIST_FORM = Form(
    closing=re.compile(
        rf"^Summary of time in seconds spent in various states by  ?{_TIMESTAMP}\n"
        r"  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL *\n"
        r" +\d+ +\d+ +(?P<run_time>\d+) +\d+ +\d+ +\d+ +\d+ *(?:\n|\Z)",
        re.MULTILINE,
    ),
    end=re.compile(r"\d *\n\n\Z"),
    other=re.compile(r"(?! *[A-Za-z]{3} [A-Za-z]{3} [ 0-9]\d )(?!.*\d\d:\d\d:\d\d)(?: .*|[A-Z]{3}.*)?"),
)


@attrs.frozen(slots=True, kw_only=True)
class Paragraph:
    """The paragraph about one job."""

    #: The native id.
    name: str
    #: The rest of the first line after the id.
    head: str
    #: The lines below the first.
    body: str
    #: The match of the closing section.
    closing: re.Match[str]


class Listing(NamedTuple, Generic[Part]):
    """The jobs in the output."""

    #: The paragraphs, or what they say.
    parts: Sequence[Part]
    #: True if the end of the output has arrived, so that no other job can follow.
    is_ended: bool


def split_paragraphs(output: str, form: Form) -> Listing[Paragraph] | None:
    """Return the paragraphs of the output, skipping text before them; None if one is incomplete."""
    text = _FOLD.sub("", output)
    chunks = _SEPARATOR.split(text)
    # a site may print a line of dashes, and bjobs prints one first if it does not know a job
    while chunks and not _has_part(chunks[0], form):
        del chunks[0]
    paragraphs = [_parse_paragraph(chunk, form, is_first=index == 0) for index, chunk in enumerate(chunks)]
    complete = [paragraph for paragraph in paragraphs if paragraph is not None]
    if not complete or len(complete) != len(paragraphs):
        return None
    return Listing(complete, is_ended=form.end.search(chunks[-1]) is not None)


def _has_part(chunk: str, form: Form) -> bool:
    """Return True if a text contains a paragraph or a part of one."""
    return any(part.search(chunk) for part in (_HEAD, EVENT, form.closing)) or "\nJob <" in f"\n{chunk}"


def _parse_paragraph(chunk: str, form: Form, *, is_first: bool) -> Paragraph | None:
    heads, closings = list(_HEAD.finditer(chunk)), list(form.closing.finditer(chunk))
    if len(heads) != 1 or len(closings) != 1 or closings[0].start() < heads[0].end():
        return None
    preamble, body = chunk[: heads[0].start()], chunk[heads[0].end() :]
    is_separated = not EVENT.search(preamble) if is_first else preamble == "\n"
    # the event of the submission follows the first line
    if not is_separated or not EVENT.match(body) or not _has_known_lines(body, closings[0], form):
        return None
    return Paragraph(name=heads[0][1], head=heads[0][2], body=body, closing=closings[0])


def _has_known_lines(body: str, closing: re.Match[str], form: Form) -> bool:
    lines = body.replace(closing[0], "").split("\n")
    return form.other is None or all(EVENT.fullmatch(it) or form.other.fullmatch(it) for it in lines)


# bhist of LSF 10.1, -n: all event logs. By default bhist reads only the newest, and LSF starts a new one
# after 1000 jobs or so (MAX_JOB_NUM).
_ALL_EVENT_LOGS = ("-n", "0")
# bhist's messages if it knows none of the jobs; the exit code is not 0, and some versions print to stdout.
_UNKNOWN_JOB = re.compile(r"^(?:No matching job found|.+: Illegal job ID\.?|Job <.+> is not found)$")
# The timeout of bhist, as a multiple of that of other commands
_TIMEOUT_FACTOR = 10


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """Return the bhist command for these jobs; it reads all event logs, which may take minutes."""
    command = lsf_command("bhist", *_ALL_EVENT_LOGS, "-l", *native_ids)
    return attrs.evolve(command, timeout=_TIMEOUT_FACTOR * site.config.command_timeout)


@hookimpl
def parse_finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> Mapping[str, Observation]:
    """Return an Observation of each job in bhist's output; of a requeued job, that of its last run.

    Jobs that have not ended are included.
    """
    histories = parse_bhist(result.stdout)
    errors = [line for line in result.stderr.splitlines() if line]
    if histories is None:
        # if bhist knows none of the jobs, it prints a single line
        messages = [*errors, *(line for line in result.stdout.splitlines() if line)]
        if result.returncode <= 0 or not messages or not all(map(_UNKNOWN_JOB.match, messages)):
            raise result.checked().no_answer
        return {native_id: Observation.denied(messages[0]) for native_id in native_ids}
    # some jobs may be unknown, and others not
    if result.returncode <= 0 or not errors or not all(map(_UNKNOWN_JOB.match, errors)):
        result.checked()
    is_lsf_10 = site.offers.get("json") is True
    observations = {it.name: observe_history(it, done_is_zero=is_lsf_10) for it in histories.parts}
    is_whole = histories.is_ended and not is_lone_element(native_ids)
    if not is_whole and not observations.keys() >= set(native_ids):
        raise result.no_answer
    return observations
