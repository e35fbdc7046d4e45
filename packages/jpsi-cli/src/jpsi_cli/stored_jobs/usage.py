"""Compares what jobs have used with what they requested, and suggests what to request.

`jpsi usage`, `explain` and `--like` use it. What was not measured is None, and never taken for zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import attrs

from jpsi import JobUsage, JpsiError
from jpsi.plugin import JobState, Reason, components
from jpsi_engine import job_store, round_up

from .. import messages

if TYPE_CHECKING:
    from jpsi_engine.job_store import StoredJob

# A job like this one is to request so much more than this one used, and at least so many seconds and bytes.
_MARGIN = 1.2
_LEAST_SECONDS, _LEAST_BYTES = 60, 64 << 20
_MINUTE, _MEBIBYTE = 60, 1 << 20
# In a shorter run, in seconds, the programs that start and account a job take more than the job itself.
_LEAST_MEASURED = 1.0
# Of the request, less is enough below this share, and more may be needed above the other.
_LOW, _HIGH = 0.5, 0.9


@attrs.frozen(kw_only=True)
class Amount:
    """The amounts of one thing that a job requested and used: seconds, cores or bytes."""

    requested: float | None = None
    used: float | None = None
    #: True if it may have used more.
    is_least: bool = False
    #: True if the job was ended at a limit, before it had used all that it needs.
    is_cut: bool = False
    #: True if it was ended at the limit of this amount.
    was_reached: bool = False

    @property
    def share(self) -> float | None:
        """The used part of the request; None if one of the two is not known."""
        return None if self.used is None or not self.requested else self.used / self.requested

    def is_better(self, suggestion: float) -> bool:
        """Return True if this would be a better request: smaller if much was not used, or else larger."""
        if self.was_reached:
            return self.requested is not None and suggestion > self.requested
        if self.requested is None or self.share is None:
            return False
        if self.share < _LOW:
            return suggestion < self.requested and not (self.is_least or self.is_cut)
        return self.share > _HIGH and suggestion > self.requested

    def suggest(self, least: float, unit: int) -> int | None:
        """Return the request of a job like this one, at least `least` and in whole units; None if unknown."""
        # a job that reached its limit needs more than that, whatever was measured
        known = [it for it in (self.used, self.requested if self.was_reached else None) if it is not None]
        if not known:
            return None
        suggestion = math.ceil(max(max(known) * _MARGIN, least) / unit) * unit
        if self.was_reached or not (self.is_least or self.is_cut) or self.is_better(suggestion):
            return suggestion
        return None


@attrs.frozen(kw_only=True)
class Usage:
    """The amounts that a job requested and, once it has ended, used."""

    time: Amount
    #: The cores; used is how many were busy on average.
    cores: Amount
    memory: Amount
    #: The seconds of CPU time; None if they are not known.
    cpu: float | None
    #: False if the job ended for a reason that says nothing of what it needs, as by a mistake in its input.
    is_telling: bool

    @property
    def suggested_time(self) -> timedelta | None:
        """The walltime for a job like this one; None if too little is known for that."""
        seconds = self.time.suggest(_LEAST_SECONDS, _MINUTE) if self.is_telling else None
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def suggested_memory(self) -> int | None:
        """The bytes of memory for a job like this one; None if too little is known for that."""
        return self.memory.suggest(_LEAST_BYTES, _MEBIBYTE) if self.is_telling else None


def complete_usages(jobs: Sequence[StoredJob]) -> list[Usage]:
    """Return the usages of jobs, after their batch systems were asked for what is not known yet."""
    answers, failures = job_store.account(jobs), dict[str, str]()
    for job in jobs:
        if isinstance(error := answers.get(job.id), JpsiError):
            failures[job.origin.name] = str(error)
    for name, why in failures.items():
        messages.warning(f"{name}: what its jobs have used cannot be asked for: {why}")
    figures = {job_id: it for job_id, it in answers.items() if not isinstance(it, JpsiError)}
    units = {it: it.walltime_unit for it in {job.origin for job in jobs}}
    return [read_usage(job, figures.get(job.id), units[job.origin]) for job in jobs]


def read_usage(
    job: StoredJob, figures: Mapping[str, float] | None = None, unit: timedelta = timedelta(seconds=1)
) -> Usage:
    """Return what a job requested, and what it used; of a job that still runs, the latter is not known.

    Args:
        job: the job.
        figures: what its batch system says that it used; None for what that has said before.
        unit: the unit to which that rounds time limits up.
    """
    spec, status = job.spec, job.status
    ran = JobUsage.of(job.history).wall_time
    seconds = None if ran is None else max(0.0, ran.total_seconds())
    accounted = job.accounted if figures is None and status.final else figures
    # figures of the batch system count more than those of the runner
    known = {**status.metadata, **(accounted or {})}
    whole, largest = (known.get(f"used.{name}") for name in ("memory", "process_memory"))
    cpu, duration = known.get("used.cpu"), spec.attributes.duration
    parts = components(spec.resources)
    cores = sum(it.computed_core_count for it in parts)
    busy = cpu / seconds if cpu is not None and seconds and seconds >= _LEAST_MEASURED else None
    is_cut = status.reason in {Reason.TIMEOUT, Reason.OUT_OF_MEMORY}
    return Usage(
        time=Amount(
            requested=round_up(duration, unit).total_seconds() if duration else None,
            used=seconds,
            is_cut=is_cut,
            was_reached=status.reason is Reason.TIMEOUT,
        ),
        cores=Amount(requested=cores, used=busy),
        memory=Amount(
            requested=getattr(spec.resources, "memory", None),
            used=largest if whole is None else whole,
            is_least=whole is None,
            is_cut=is_cut,
            was_reached=status.reason is Reason.OUT_OF_MEMORY,
        ),
        cpu=cpu,
        is_telling=is_cut or status.state is JobState.COMPLETED,
    )
