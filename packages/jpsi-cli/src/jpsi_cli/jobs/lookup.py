"""From jobs on disk to jobs that can be waited for, cancelled and so on: through their executors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import Origin, SpooledJob

from .. import messages

# How long it takes at most to find out about a process of this machine that is no more.
_LOOK_SECONDS = 5.0


@attrs.frozen
class Recalled:
    """Jobs that are followed from here, by id, and why others are not."""

    jobs: Mapping[str, jpsi.Job]
    failures: Mapping[str, jpsi.JpsiError]

    def best(self, job: SpooledJob) -> jpsi.JobStatus:
        """What is known best of a job."""
        return best(job, self.jobs[job.id].status) if job.id in self.jobs else job.status

    def await_gone(self, jobs: Iterable[SpooledJob]) -> None:
        """Wait for the end of those jobs whose process on this machine was gone; it is found out at once."""
        for job in jobs:
            if job.origin.machine is not None and job.remark is not None and job.id in self.jobs:
                self.jobs[job.id].wait(_LOOK_SECONDS)

    def tell_failures(self) -> None:
        """Say why jobs are not followed, each reason once."""
        tell_each(self.failures)


def recalled(jobs: Iterable[SpooledJob]) -> Recalled:
    """Have jobs followed from here; nothing else of their executors is."""
    found: dict[str, jpsi.Job] = {}
    failures: dict[str, jpsi.JpsiError] = {}
    asked_for = []
    for job in jobs:
        if job.damage and job.spec.executable is None:
            # nobody can tell what it is
            failures[job.id] = jpsi.SubmitException(f"job {job.id} is {job.remark}")
        else:
            asked_for.append(job)
    for origin, asked in _by_origin(asked_for).items():
        ids = [job.id for job in asked]
        try:
            found |= {job.id: job for job in origin.open().recall(ids)}
        except jpsi.JpsiError as e:
            failures |= {job.id: _unanswered(job, e) for job in asked}
            continue
        missing = jpsi.SubmitException(
            f"{origin.name} does not find it: it is being submitted, or {origin.path} is configured no more"
        )
        failures |= {job_id: missing for job_id in ids if job_id not in found}
    failures |= _unsent([job.id for job in found.values() if job.native_id is None])
    return Recalled({job.id: job for job in found.values() if job.id not in failures}, failures)


def _by_origin(jobs: Iterable[SpooledJob]) -> dict[Origin, list[SpooledJob]]:
    found: dict[Origin, list[SpooledJob]] = {}
    for job in jobs:
        found.setdefault(job.origin, []).append(job)
    return found


def _unanswered(job: SpooledJob, error: jpsi.JpsiError) -> jpsi.JpsiError:
    """Say what is not known of a job that nobody was to be asked about now."""
    if job.status.state is not jpsi.JobState.NEW or job.is_unsent:
        return error
    return jpsi.SubmitException(f"{job.remark}; and that is not to be found out now: {error}", error)


def _unsent(ids: Collection[str]) -> dict[str, jpsi.JpsiError]:
    """Say of jobs why there is nothing to follow; it may have been found out just now."""
    if not ids:
        return {}
    remarks = {job.id: job.remark for job in job_store.jobs() if job.is_unsent}
    return {it: jpsi.SubmitException(remarks.get(it) or "it was not submitted") for it in ids}


def refreshed(jobs: Collection[SpooledJob]) -> Mapping[str, jpsi.JobStatus]:
    """The statuses, by id, of jobs that had not ended; each batch system is asked once about all its jobs."""
    live = recalled(job for job in jobs if not job.status.final)
    live.tell_failures()
    places = {job.id: job.origin.name for job in jobs}
    asked: set[jpsi.JobExecutor] = set()
    for job in live.jobs.values():
        executor = job.executor
        if executor is None or executor in asked or job.status.final:
            continue
        asked.add(executor)
        try:
            executor.info(job)
        except jpsi.JpsiError as e:
            if not job.status.final:
                messages.warning(f"{places[job.id]}: {e}")
    live.await_gone(jobs)
    return {job_id: job.status for job_id, job in live.jobs.items()}


def find_those_of_others(name: str) -> None:
    """Have on disk here the jobs that others have submitted to a target of another machine."""
    try:
        with jpsi.JobExecutor(name) as executor:
            if executor.system.is_elsewhere:
                executor.recover()
    except jpsi.JpsiError as e:
        messages.warning(f"{name}: {e}")


def best(job: SpooledJob, heard: jpsi.JobStatus) -> jpsi.JobStatus:
    """What is known best of a job: what is on disk, unless something further or more was heard."""
    written = job.status
    if heard.state is not written.state:
        return written if written.final else heard
    if written.final or not heard.message:
        return written
    return attrs.evolve(written, message=heard.message, metadata={**written.metadata, **heard.metadata})


def tell_each(failures: Mapping[str, jpsi.JpsiError]) -> None:
    """Say why something was not done for jobs, each reason once, with those it is true for."""
    reasons: dict[str, list[str]] = {}
    for job_id, error in failures.items():
        reasons.setdefault(str(error), []).append(job_id)
    for reason, ids in reasons.items():
        named = ids[0] if ids[0] in reason or len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
        messages.error(reason if ids[0] in reason else f"job {named}: {reason}")
