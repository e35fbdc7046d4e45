"""The values that the modules of `jpsi doctor` exchange: facts about an executor, and findings.

`examination` collects the facts, and `checks` turns them into findings.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

import jpsi


class Verdict(enum.StrEnum):
    """The verdict of a check."""

    OK = "ok"
    #: Jobs run, but jpsi cannot do all that it usually can.
    WARNING = "warning"
    #: Jobs do not run.
    WRONG = "wrong"
    #: There was nothing to check.
    SKIPPED = "skipped"


@attrs.frozen(kw_only=True)
class ProbeResult:
    """The outcome of a probe job."""

    #: Why it was not submitted, if it was not.
    refusal: str | None = None
    #: The last known status.
    status: jpsi.JobStatus | None = None
    #: How long `jpsi doctor` waited for it, in seconds.
    seconds: float = 0.0
    #: The node on which it ran, from its own output.
    node: str | None = None
    #: The folder of its output.
    folder: str | None = None


@attrs.frozen(kw_only=True)
class Facts:
    """The facts about an executor; where jpsi failed to find one out, its field holds the exception."""

    executor: str
    #: True if the executor is a target of the configuration.
    is_target: bool = False
    #: The name of the remote host on which commands run; None if they run on this machine.
    connection: str | jpsi.JpsiError | None = None
    #: The commands of the batch system, with their paths; empty if it has no commands.
    programs: Mapping[str, str | None] | jpsi.JpsiError = attrs.field(factory=dict)
    version: str | jpsi.JpsiError | None = None
    #: The error if the batch system does not answer.
    answer_error: jpsi.JpsiError | None = None
    #: Then, another executor here that gets an answer from commands of the same names.
    other_that_answers: str | None = None
    queues: Sequence[jpsi.Queue] | jpsi.JpsiError = ()
    #: The walltime that jpsi's configuration gives to jobs without one.
    default_duration: timedelta | None = None
    #: The largest number of jobs in one submission.
    array_size: int | None = None
    #: The largest number of jobs that one command submits where there are no arrays.
    jobs_per_submission: int = 1
    #: The probe jobs by name (`PLAIN`, ...); empty if none ran.
    probes: Mapping[str, ProbeResult] = attrs.field(factory=dict)
    #: True if the accounting of the batch system knows the plain probe job; None if there is no accounting.
    is_accounted: bool | jpsi.JpsiError | None = None
    #: True if the queue says how that job ended.
    queue_tells_end: bool = False
    #: Problems with files of jobs of any executor, and what to do: a sentence for each.
    damaged: Sequence[str] | jpsi.JpsiError = ()

    @property
    def has_commands(self) -> bool:
        """True if jpsi queries the batch system by commands."""
        return self.programs != {} or self.answer_error is not None


@attrs.frozen(kw_only=True)
class Finding:
    """The finding of a check."""

    name: str
    verdict: Verdict
    #: A sentence for people.
    message: str
    #: Values for the executor's section of the configuration.
    advice: Mapping[str, Any] = attrs.field(factory=dict)


#: The names of the probe jobs: a job that requests nothing, one with a long name, and one with memory.
PLAIN, NAMED, SIZED = "plain", "named", "sized"


def is_healthy(found: Sequence[Finding]) -> bool:
    """Return True if no finding keeps jobs from running."""
    return all(it.verdict is not Verdict.WRONG for it in found)


def configuration(facts: Facts, found: Sequence[Finding]) -> dict[str, Any]:
    """Return what to put into the configuration; empty if nothing is needed."""
    section: dict[str, Any] = {}
    for finding in found:
        for place, fields in finding.advice.items():
            section.setdefault(place, {}).update(fields)
    return {"targets" if facts.is_target else "executors": {facts.executor: section}} if section else {}
