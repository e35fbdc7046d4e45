"""The option `--dependency` of the fake of Slurm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler

#: The reason codes of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

# The id of a job or an array element
_ID = re.compile(r"[0-9]+(_[0-9]+)?")
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def dependency_refusal(text: str) -> str | None:
    """Return sbatch's message about a malformed `--dependency`; None if it is valid."""
    parts = [part.split(":") for part in text.split(",")] if text else []
    is_valid = all(kind in _KINDS and ids and all(map(_ID.fullmatch, ids)) for kind, *ids in parts)
    return None if is_valid else "Job dependency problem"


def dependency_check(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function cancels a job that can never start, if the job was submitted with that option.
    """
    dependencies = list(_parse_dependencies(options.get("dependency", "")))
    if not dependencies:
        return None

    def blocking_reason() -> str | None:
        known = {job.native_id: job for job in scheduler.listed()}
        # A job that slurmctld does not know satisfies every dependency.
        results = [known[other].state.meets(_KINDS[kind]) for kind, other in dependencies if other in known]
        if False in results:
            if options.get("kill-on-invalid-dep") == "yes":
                scheduler.cancel(number)
            return NEVER
        return WAITS if None in results else None

    return blocking_reason


def _parse_dependencies(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(",") if text else ():
        kind, *ids = part.split(":")
        yield from ((kind, native_id) for native_id in ids)
