"""What `--dependency` means over a fake batch system."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler

#: Why a job is pending that waits for another, and one that waits in vain.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

# A job, or an element of an array
_ID = re.compile(r"[0-9]+(_[0-9]+)?")
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def dependency_refusal(text: str) -> str | None:
    """What sbatch says of a `--dependency` that it does not understand."""
    parts = [part.split(":") for part in text.split(",")] if text else []
    sound = all(kind in _KINDS and ids and all(map(_ID.fullmatch, ids)) for kind, *ids in parts)
    return None if sound else "Job dependency problem"


def blocked(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str]
) -> Callable[[], str | None] | None:
    """Says why a job may not start yet; one that never may is cancelled if it asked for that."""
    wanted = list(_wanted(options.get("dependency", "")))
    if not wanted:
        return None

    def why() -> str | None:
        known = {job.native_id: job for job in scheduler.listed()}
        # A job that slurmctld does not know counts as one that ended as it should.
        met = [known[other].state.meets(_KINDS[kind]) for kind, other in wanted if other in known]
        if False in met:
            if options.get("kill-on-invalid-dep") == "yes":
                scheduler.cancel(number)
            return NEVER
        return WAITS if None in met else None

    return why


def _wanted(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(",") if text else ():
        kind, *ids = part.split(":")
        yield from ((kind, native_id) for native_id in ids)
