"""What `jpsi doctor` finds out about an executor, and what it says of that: values alone."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

import jpsi


class Verdict(enum.Enum):
    """What a check came to."""

    OK = "ok"
    #: Jobs run, but not all that jpsi can do is to be had.
    WARNING = "warning"
    #: Jobs do not run.
    WRONG = "wrong"
    #: There was nothing to look at.
    SKIPPED = "skipped"


@attrs.frozen(kw_only=True)
class Trial:
    """What became of a job that was tried."""

    #: Why it was not submitted, if it was not.
    refusal: str | None = None
    #: The last status that was seen.
    status: jpsi.JobStatus | None = None
    #: How long it was waited for.
    seconds: float = 0.0
    #: The node that it ran on, as it said itself.
    node: str | None = None
    #: Where it keeps what it says.
    folder: str | None = None


@attrs.frozen(kw_only=True)
class Facts:
    """What was found out; an exception stands for an answer that was not given."""

    executor: str
    #: Whether that is a target of the configuration.
    is_target: bool = False
    #: What the other machine is called on which commands run; None if they run on this one.
    connection: str | jpsi.JpsiError | None = None
    #: The commands that are called, with their paths; none where there are no commands to call.
    programs: Mapping[str, str | None] | jpsi.JpsiError = attrs.field(factory=dict)
    version: str | jpsi.JpsiError | None = None
    #: Why the batch system does not answer, if it does not.
    silence: jpsi.JpsiError | None = None
    queues: Sequence[jpsi.Queue] | jpsi.JpsiError = ()
    #: How long jobs may run that do not say it, by jpsi's configuration.
    usual: timedelta | None = None
    #: How many jobs are one submission.
    array_size: int | None = None
    #: Jobs by what was tried with them; none if nothing was.
    trials: Mapping[str, Trial] = attrs.field(factory=dict)
    #: Whether the accounting knows the job; None if there is none.
    is_accounted: bool | jpsi.JpsiError | None = None
    #: What is wrong with files of jobs, whichever executor has them, and what to do: a sentence for each.
    damaged: Sequence[str] | jpsi.JpsiError = ()

    @property
    def has_commands(self) -> bool:
        """Whether there is a batch system that is asked by commands."""
        return self.programs != {} or self.silence is not None


@attrs.frozen(kw_only=True)
class Finding:
    """What a check found."""

    name: str
    verdict: Verdict
    #: A sentence for people.
    message: str
    #: What to put into the section of the executor in the configuration.
    advice: Mapping[str, Any] = attrs.field(factory=dict)


#: The trials: a job that asks for nothing, one with much of a name, and one with memory.
PLAIN, NAMED, SIZED = "plain", "named", "sized"


def is_healthy(found: Sequence[Finding]) -> bool:
    """Whether nothing was found that keeps jobs from running."""
    return all(it.verdict is not Verdict.WRONG for it in found)


def configuration(facts: Facts, found: Sequence[Finding]) -> dict[str, Any]:
    """What to put into the configuration; empty if nothing is."""
    section: dict[str, Any] = {}
    for finding in found:
        for place, fields in finding.advice.items():
            section.setdefault(place, {}).update(fields)
    return {"targets" if facts.is_target else "executors": {facts.executor: section}} if section else {}
