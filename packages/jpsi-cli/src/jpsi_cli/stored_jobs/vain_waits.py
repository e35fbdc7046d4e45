"""Awaits the ends of deferred jobs that can never start, as what they wait for has ended otherwise.

The process that waits to submit such a job ends it, but notices only a moment after the other job has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import messages

# A process that has ended no such job for so many seconds seems to be stuck. On a busy machine, with files
# that take long to read, it looks at the other jobs every 15 seconds, once for each job of a chain.
_TIMEOUT_SECONDS = 40.0
# The seconds after which jpsi reports what it waits for.
_SILENT_SECONDS = 1.0
_POLL_SECONDS = 0.2


def settle_vain_waits(
    jobs: Sequence[StoredJob],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Sequence[StoredJob]:
    """Return these jobs, once those have ended that are deferred and can never start, or after a while."""
    began = since = clock()
    is_reported, seen = False, frozenset[str]()
    while deferred := [job for job in jobs if job.deferral is not None]:
        start = clock()
        vain = find_vain_waits(job_store.jobs())
        seen |= vain
        again = {job.id: job for job in job_store.reread(deferred)}
        jobs = [again.get(job.id, job) for job in jobs]
        waiting = [job for job in jobs if job.deferral is not None]
        left = sum(job.id in vain for job in waiting)
        now = clock()
        if seen & ({job.id for job in deferred} - {job.id for job in waiting}):
            since = now
        if not left or now - since >= _TIMEOUT_SECONDS:
            break
        if now - began >= _SILENT_SECONDS and not is_reported:
            is_reported = True
            which = "1 job that can" if left == 1 else f"{left} jobs that can"
            messages.error(f"jpsi is about to end {which} never start, and waits for that")
        # to read very many jobs takes long
        sleep(max(_POLL_SECONDS, now - start))
    return jobs


def find_vain_waits(stored: Iterable[StoredJob]) -> frozenset[str]:
    """Return the ids of the deferred jobs that a process is about to end, as they can never start.

    Args:
        stored: all jobs, each behind those that it waits for.
    """
    states: dict[str, jpsi.JobState] = {}
    vain: set[str] = set()
    attended: dict[str, bool] = {}
    for job in stored:
        states[job.id] = job.status.state
        deferral = job.deferral
        if deferral is None or deferral.is_held(job.id):
            continue
        if deferral.name not in attended:
            attended[deferral.name] = deferral.is_attended
        if attended[deferral.name] and any(_is_vain(it, states, vain) for it in _dependencies(job)):
            vain.add(job.id)
    return frozenset(vain)


def _is_vain(dependency: jpsi.Dependency, states: dict[str, jpsi.JobState], vain: set[str]) -> bool:
    awaited = str(dependency.job)
    if awaited in vain:
        # it will be cancelled
        return dependency.kind is jpsi.DependencyKind.OK
    return awaited in states and dependency.kind.is_met(states[awaited]) is False


def _dependencies(job: StoredJob) -> Sequence[jpsi.Dependency]:
    """Return the jobs that a job waits for; none if that cannot be read, for its process neither."""
    try:
        return job.read_dependencies()
    except jpsi.SubmitException:
        return ()
