"""The time and the memory that a job has used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import attrs

from jpsi.model.states import JobState, JobStatus


@attrs.frozen(slots=True, kw_only=True)
class JobUsage:
    """The time and the memory that a job has used; None is not known, and never zero."""

    #: The time from its start to its end; of a job that was submitted again, that of its last attempt.
    wall_time: timedelta | None = None
    #: The CPU time of all its processes.
    cpu_time: timedelta | None = None
    #: The bytes of memory of the whole job at its peak.
    memory: int | None = None
    #: The bytes of memory of its largest process at its peak.
    process_memory: int | None = None

    @classmethod
    def of(cls, statuses: Sequence[JobStatus]) -> JobUsage:
        """Return what a job with these statuses has used; nothing is known before its end."""
        *earlier, last = statuses
        if not last.final:
            return cls()
        # jpsi did not see a state that was filled in
        starts = [it.time for it in earlier if it.state is JobState.ACTIVE and "filled_in" not in it.metadata]
        if any("attempt" in it.metadata for it in statuses):
            began = last.metadata.get("attempt_started")
            starts = [] if began is None else [datetime.fromisoformat(began)]
        cpu, used = last.metadata.get("used.cpu"), last.metadata
        return cls(
            wall_time=last.time - starts[0] if starts else None,
            cpu_time=None if cpu is None else timedelta(seconds=cpu),
            memory=used.get("used.memory"),
            process_memory=used.get("used.process_memory"),
        )
