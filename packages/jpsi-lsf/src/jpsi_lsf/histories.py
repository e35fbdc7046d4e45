"""Jobs as `bjobs -l` and `bhist -l` print them: a paragraph each, in every version of LSF."""

from __future__ import annotations

import functools
import re

import attrs

from jpsi.plugin import Observation

from .ids import ID_PATTERN
from .observing import End, nodes, observed

# Lines are cut after 80 characters, wherever that is, and go on behind 21 blanks.
_FOLD = re.compile(r"\n {21}")
_HEAD = re.compile(rf"^Job <({ID_PATTERN})>(.*)$", re.MULTILINE)
_STATUS = re.compile(r", Status <([A-Z_]+)>")
_DESCRIPTION = re.compile(r", Job Description <([^<>]*)>")
_EVENT = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d(?: \d{4})?: (.*)$", re.MULTILINE)
_REASONS = re.compile(r"^ PENDING REASONS:\n((?: .*\S.*\n?)+)", re.MULTILINE)
_LIMIT = re.compile(r"^ RUNLIMIT\s*\n\s*([\d.]+) min", re.MULTILINE)
_SUMMARY = re.compile(r"^ +PEND +PSUSP +RUN .*\n +\d+ +\d+ +(\d+) ", re.MULTILINE)

# What events say; the texts are those of volclava 2.2 and, as far as published output shows them, of LSF 10.1
_PLACED = re.compile(r"(?:\[\d+\] )?(?:[Ss]tarted|Dispatched)\b[^<]*((?:<[^<>]+> ?)+)")
_PENDING = re.compile(r"Pending:|Requeue")
_REQUEUED = re.compile(r"Pending: *(?:Job has been requeued|Requeued job)|Requeue")
# Other signals are sent to jobs that are to go on.
_KILL = re.compile(r"Signal <(KILL|REQUEUE\w*)> requested by user or administrator *<([^<>]+)>")
_DONE = re.compile(r"Done successfully")
_EXITED = re.compile(r"Exited\b(?: with exit code (\d+)| by (?:LSF )?signal (\d+))?|.*kill ZOMBIE job")
_WHY = re.compile(r"TERM_[A-Z_]+[^;.]*")
_SIGNAL_BASE = 128


@attrs.frozen(slots=True, kw_only=True)
class History:
    """One paragraph."""

    #: The native id.
    name: str
    #: The state as bjobs says it; bhist does not.
    word: str | None
    #: What the job is described by.
    description: str
    #: Why it is pending.
    pending: str
    #: What has happened to it, in order.
    events: tuple[str, ...]
    #: How many seconds it may run, and has run.
    limit: float | None
    run_time: float | None


def histories(output: str) -> list[History]:
    """The paragraphs of an answer, in order; one that was cut before it says anything is left out."""
    text = _FOLD.sub("", output)
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    found = (_history(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=True))
    return [it for it in found if it.word is not None or it.events]


def _history(head: re.Match[str], body: str) -> History:
    status, descriptions = _STATUS.search(head[2]), _DESCRIPTION.findall(head[2])
    reasons, limit, summary = _REASONS.search(body), _LIMIT.search(body), _SUMMARY.search(body)
    return History(
        name=head[1],
        word=status[1] if status else None,
        description=descriptions[-1] if descriptions else "",
        pending="; ".join(line.strip(" ;") for line in reasons[1].splitlines()) if reasons else "",
        events=tuple(_EVENT.findall(body)),
        limit=60 * float(limit[1]) if limit else None,
        run_time=float(summary[1]) if summary else None,
    )


@attrs.frozen(slots=True, kw_only=True)
class _Past:
    """What the events up to one of them come to."""

    word: str = "PEND"
    #: Where it runs, or ran.
    placed: str = ""
    exit_code: int | None = None
    why: str = ""
    killed_by: str | None = None
    #: Whether it is ended in order to be put back.
    is_put_back: bool = False
    restarts: int = 0


def _after(past: _Past, event: str) -> _Past:
    """What one more event makes of it."""
    if why := _WHY.search(event):
        past = attrs.evolve(past, why=why[0].strip())
    if placed := _PLACED.match(event):
        return attrs.evolve(past, word="RUN", placed=placed[1])
    if killed := _KILL.match(event):
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


def observation(history: History, *, done_is_zero: bool) -> Observation:
    """What a paragraph says about a job.

    Args:
        history: the paragraph.
        done_is_zero: whether `Done successfully` means exit code 0. What is compatible with old versions of
            LSF has been seen to say it of jobs that were killed.
    """
    past = functools.reduce(_after, history.events, _Past())
    word = past.word if history.word is None else history.word
    # LSF 10 says so itself, and its limits can be minutes of another machine.
    is_overtime = (
        not done_is_zero
        and past.restarts == 0
        and history.limit is not None
        and history.run_time is not None
        and 0 < history.limit <= history.run_time
    )
    code = past.exit_code
    return observed(
        word,
        pending=history.pending,
        end=End(0 if word == "DONE" and done_is_zero else code, past.why, past.killed_by, is_overtime),
        ran_on=nodes(":".join(re.findall(r"<([^<>]+)>", past.placed))),
        restarts=past.restarts if history.word is None else None,
    )
