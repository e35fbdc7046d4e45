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
    for part in text.split(" && ") if text else ():
        match = _CONDITION.match(part)
        if match is None or match[1] not in _KINDS:
            return f"{text}: Dependency condition syntax error"
        if match[2] not in known:
            return f"{match[2]}: No matching job found"
    return None


def blocked(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function ends a job that can never start, if the job was submitted with `-ti`.
    """
    wanted = [_CONDITION.match(part) for part in options.get("w", "").split(" && ") if part]
    if not wanted:
        return None

    def why() -> str | None:
        known = {job.native_id: job for job in scheduler.jobs}
        met = [known[part[2]].state.meets(_KINDS[part[1]]) for part in wanted if part is not None]
        if False in met:
            if "ti" in options:
                scheduler.cancel(number)
            return NEVER
        return WAITS if None in met else None

    return why
