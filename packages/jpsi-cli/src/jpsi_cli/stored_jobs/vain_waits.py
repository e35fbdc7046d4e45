"""Awaits the ends of deferred jobs that can never start, as what they wait for has ended otherwise.

The process that waits to submit such a job ends it, but notices only a moment after the other job has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

# The seconds after which a process that has not ended such a job seems to be stuck.
_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.2


def settle_vain_waits(
    jobs: Sequence[StoredJob],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Sequence[StoredJob]:
    """Return these jobs, once those have ended that are deferred and can never start, or after a while."""
    deadline = clock() + _TIMEOUT_SECONDS
    while deferred := [job for job in jobs if job.deferral is not None]:
        stored = {job.id: job for job in job_store.jobs()}
        if clock() >= deadline or not any(_waits_in_vain(job, stored) for job in deferred):
            break
        sleep(_POLL_SECONDS)
        again = {job.id: job for job in job_store.reread(deferred)}
        jobs = [again.get(job.id, job) for job in jobs]
    return jobs


def _waits_in_vain(job: StoredJob, stored: Mapping[str, StoredJob]) -> bool:
    """Return True if a process is about to end a deferred job, or one without which it can never start."""
    deferral = job.deferral
    if deferral is None or deferral.is_held(job.id) or not deferral.is_attended:
        return False
    try:
        dependencies = job.read_dependencies()
    except jpsi.SubmitException:
        # the process cannot read them either
        return False
    # an older job cannot wait for a newer one, so that this ends
    for it in dependencies:
        awaited = stored.get(str(it.job))
        if awaited is None:
            continue
        if it.kind.is_met(awaited.status.state) is False:
            return True
        if it.kind is jpsi.DependencyKind.OK and _waits_in_vain(awaited, stored):
            return True
    return False
