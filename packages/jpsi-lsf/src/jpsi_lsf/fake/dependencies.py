"""The option `-w` of the fakes of LSF."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler

#: The pending reasons of jobs whose dependency is not satisfied yet, or never will be.
WAITS = "Job dependency condition not satisfied"
NEVER = "Dependency condition invalid or never satisfied"

_CONDITION = re.compile(r"(\w+)\((\d+(?:\[\d+\])?)\)\Z")
_KINDS = {"done": DependencyKind.OK, "ended": DependencyKind.ANY, "exit": DependencyKind.NOTOK}


def dependency_refusal(scheduler: FakeScheduler, text: str) -> str | None:
    """Return bsub's error about a malformed `-w` or an unknown job; None if it is valid."""
    known = {job.native_id for job in scheduler.listed()}
    for condition in text.split(" && ") if text else ():
        match = _CONDITION.match(condition)
        if match is None or match[1] not in _KINDS:
            return f"{text}: Dependency condition syntax error"
        if match[2] not in known:
            return f"{match[2]}: No matching job found"
    return None


def dependency_check(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function ends a job that can never start, if the job was submitted with `-ti`.
    """
    conditions = [
        _CONDITION.match(condition) for condition in options.get("w", "").split(" && ") if condition
    ]
    if not conditions:
        return None

    def blocking_reason() -> str | None:
        known = {job.native_id: job for job in scheduler.jobs}
        results = [
            known[condition[2]].state.meets(_KINDS[condition[1]])
            for condition in conditions
            if condition is not None
        ]
        if False in results:
            if "ti" in options:
                scheduler.cancel(number)
            return NEVER
        return WAITS if None in results else None

    return blocking_reason
