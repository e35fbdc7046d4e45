"""Waits for jobs for which no batch system can wait, and submits the jobs that are deferred until then.

`jpsi submit --after` starts this module as a process of its own, which outlives it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import Deferral, StoredJob

from .. import messages
from ..error_boundary import SelectionError
from .array_limit import limit_arrays
from .dependencies import describe_unmet, sort_dependencies
from .recall import best_status, recall_jobs

_PROGRAM = (
    "from sys import argv; from jpsi_cli.stored_jobs import submit_deferred; "
    "submit_deferred(argv[1], int(argv[2]))"
)
# The seconds between two checks of whether jobs were submitted or cancelled.
_POLL_SECONDS = 0.5
# The seconds after which a failed request to a batch system is repeated.
_RETRY_SECONDS = 15.0


def start_waiting(deferral: Deferral) -> Deferral:
    """Have a process wait and submit the jobs of a deferral, unless there is one.

    Raises:
        SubmitException: the process cannot be started.
    """
    try:
        # without the current directory, in which a module of the same name may be
        return deferral.start([sys.executable, "-P", "-c", _PROGRAM, deferral.name])
    except OSError as e:
        msg = f"no process can be started that submits the deferred jobs: {e}"
        raise jpsi.SubmitException(msg, e) from e


def await_submission(jobs: Sequence[StoredJob], deadline: float | None = None) -> list[StoredJob]:
    """Return the jobs once those that are deferred were submitted, or can never be.

    A held one is submitted once another process has released it.

    If no process waits to submit a job, one is started. At the deadline, in seconds of the monotonic clock,
    they are returned as they are.
    """
    reported: set[str] = set()
    while deferred := {job.id: job.deferral for job in jobs if job.deferral is not None}:
        held = {job_id for job_id, deferral in deferred.items() if deferral.is_held(job_id)}
        for job_id in sorted(held - reported):
            messages.error(f"job {job_id} is held: jpsi release {job_id}")
        reported |= held
        due = {it.name: it for job_id, it in deferred.items() if job_id not in held}
        for deferral in due.values():
            start_waiting(deferral)
        seconds_left = _POLL_SECONDS if deadline is None else deadline - time.monotonic()
        if seconds_left <= 0:
            break
        time.sleep(min(_POLL_SECONDS, seconds_left))
        found = {job.id: job for job in job_store.jobs()}
        jobs = [found.get(job.id, job) for job in jobs]
    return list(jobs)


def await_dependencies(
    wanted: Iterable[jpsi.Dependency], is_wanted: Callable[[], object] = lambda: True
) -> list[str] | None:
    """Wait until jobs have ended as they must; return why they did not, as soon as that is certain.

    The result is None if the wait has ended before that, and an empty list if they all did.

    Args:
        wanted: the jobs, by the ids that jpsi gave them.
        is_wanted: called now and then; the wait ends if the result is false.
    """
    left = {str(it.job): it for it in wanted}
    followed: dict[str, jpsi.Job] = {}
    stored: dict[str, StoredJob] = {}
    retry_at = 0.0
    while left and is_wanted():
        if len(followed) < len(left) and time.monotonic() >= retry_at:
            stored = {job.id: job for job in job_store.jobs() if job.id in left}
            if missing := left.keys() - stored.keys():
                return [f"the job {it} is not on disk any more" for it in sorted(missing)]
            recallable = [it for it in stored.values() if not it.status.final and it.deferral is None]
            recalled = recall_jobs(it for it in recallable if it.id not in followed)
            followed |= recalled.jobs
            retry_at = time.monotonic() + (_RETRY_SECONDS if recalled.failures else _POLL_SECONDS)
        statuses = {it.id: best_status(it, _status(followed.get(it.id))) for it in stored.values()}
        ended = {job_id: status for job_id, status in statuses.items() if status.final}
        unmet = [
            describe_unmet(left[job_id].kind, stored[job_id], status)
            for job_id, status in ended.items()
            if not left[job_id].kind.is_met(status.state)
        ]
        if unmet:
            return unmet
        for job_id in ended:
            del left[job_id], stored[job_id]
            followed.pop(job_id, None)
        if not left:
            break
        if followed:
            jpsi.wait_all(followed.values(), _POLL_SECONDS)
        else:
            time.sleep(_POLL_SECONDS)
    return None if left else []


def _status(job: jpsi.Job | None) -> jpsi.JobStatus | None:
    return None if job is None else job.status


def submit_deferred(name: str, lock: int) -> None:
    """Wait, and submit the jobs of a deferral.

    Args:
        name: the name of the deferral.
        lock: the file descriptor by which this process holds the lock of the deferral.
    """
    jobs = {job.id: job for job in job_store.jobs() if job.deferral is not None and job.deferral.name == name}
    if not jobs:
        return
    first = next(iter(jobs.values()))
    deferral, origin = first.deferral, first.origin
    assert deferral is not None  # noqa: S101  selected above
    specs = [job.spec for job in jobs.values()]
    asked_for = origin.asked_for[0]
    deferred_jobs = _DeferredJobs(deferral, asked_for, _group(jobs.values()))
    try:
        while deferral.acknowledge(jobs):
            with _retrying(), limit_arrays(origin.open(), asked_for, specs) as executor:
                deferred_jobs.submit_when_due(executor)
    except (jpsi.JpsiError, SelectionError) as e:
        for job_id in deferral.acknowledge(jobs):
            deferral.give_up(job_id, str(e))
        raise
    os.close(lock)
    if deferral.acknowledge(jobs):
        # the user has released them since, and this process still seemed to wait for them
        start_waiting(deferral)


def _group(jobs: Iterable[StoredJob]) -> Mapping[tuple[jpsi.Dependency, ...], list[str]]:
    """Return the ids of jobs by what they wait for; the documents of some may name further jobs."""
    found: dict[tuple[jpsi.Dependency, ...], list[str]] = {}
    for job in jobs:
        after = dict.fromkeys(map(jpsi.Dependency.of, job.spec.attributes.after or ()))
        found.setdefault(tuple(after), []).append(job.id)
    return found


@attrs.define
class _DeferredJobs:
    """The jobs of a deferral, and what is known of the jobs that they wait for."""

    _deferral: Deferral
    #: The name that the user gave the executor.
    _name: str
    #: The ids of jobs by what they wait for.
    _groups: Mapping[tuple[jpsi.Dependency, ...], list[str]]
    _met: set[jpsi.Dependency] = attrs.field(factory=set, init=False)

    def submit_when_due(self, executor: jpsi.JobExecutor) -> None:
        """Submit the jobs that wait for no others, unless held or cancelled; wait once for the rest."""
        for after, job_ids in self._groups.items():
            pending = self._deferral.acknowledge(job_ids)
            if not pending:
                continue
            left = [it for it in after if it not in self._met]
            try:
                dependencies = sort_dependencies(left, executor, self._name)
            except jpsi.InvalidJobException as e:
                self._deferral.end(pending, "; ".join(e.problems))
                continue
            if not dependencies.foreign:
                _submit(pending, executor, dependencies.native)
                continue
            unmet = await_dependencies(
                dependencies.foreign, functools.partial(self._deferral.acknowledge, job_ids)
            )
            if unmet:
                self._deferral.end(self._deferral.acknowledge(job_ids), "; ".join(unmet))
            elif unmet is not None:
                # jobs of its own batch system may have ended meanwhile
                self._met.update(dependencies.foreign)


@contextlib.contextmanager
def _retrying() -> Iterator[None]:
    """Write a transient error to the log, and wait some time after it."""
    try:
        yield
    except jpsi.SubmitException as e:
        if not e.transient:
            raise
        sys.stderr.write(f"{e}\n")
        time.sleep(_RETRY_SECONDS)


def _submit(job_ids: Sequence[str], executor: jpsi.JobExecutor, after: Sequence[jpsi.Dependency]) -> None:
    found = [job for job in executor.recall(job_ids) if job.native_id is None]
    if not found:
        msg = f"{executor.name} does not find deferred jobs: another process may be submitting them"
        raise jpsi.SubmitException(msg, transient=True)
    for job in found:
        if job.spec is not None:
            job.spec.attributes.after = list(after)
    if len(found) == 1:
        executor.submit(found[0])
    else:
        executor.submit_many(found)
    executor.record_site_policy()
