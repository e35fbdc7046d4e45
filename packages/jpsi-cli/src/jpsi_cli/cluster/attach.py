"""Implements `jpsi attach`: follows a job of the batch system by its native id until it has ended.

Any program may have submitted the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..error_boundary import SelectionError
from ..output import choose_display
from ..stored_jobs import configured_target, match_jobs, wait_for_ends

# The seconds between two updates of the display while the status stays the same.
_POLL_SECONDS = 1.0


def attach(native_id: str, *, executor: str | None, as_json: bool) -> int:
    """Show the states of a job, and return the exit code for its end; wait for all jobs of an array."""
    jobs, url = job_store.jobs(), None
    if executor is None:
        executor, url = executor_of(native_id, jobs)
    with jpsi.JobExecutor(executor, url=url) as opened:
        target = url or configured_target(executor)
        known = array_elements(native_id, jobs, opened.name, target)
        # a native id takes precedence over a name
        if not known and not any(native_id in {it.native_id, it.array_native_id} for it in jobs):
            known = named_jobs(native_id, jobs, opened.name, target)
        if len(known) == 1 and known[0].native_id is not None:
            native_id, known = known[0].native_id, []
        if not known:
            if any(native_id == it.native_id for it in jobs) and not as_json:
                messages.error(f"its states are shown, not its output: jpsi logs -f {native_id} follows that")
            # what has the id there may be another program, which runs for days
            is_of_any_process = executor is None and opened.name == "local"
            if is_of_any_process:
                where = "jpsi looks on local; -x names another executor or target"
                messages.error(f"no job of jpsi has the native id {native_id}: {where}")
            code = _follow(opened, native_id, executor or opened.name, as_json=as_json)
            if executor is None and code == exit_codes.JPSI and not is_of_any_process:
                messages.error(f"jpsi looked on {opened.name}; -x names another executor or target")
            return code
    return wait_for_ends([native_id], known, None, as_json=as_json)


def executor_of(word: str, jobs: Sequence[StoredJob]) -> tuple[str | None, str | None]:
    """Return the executor or target of the stored jobs that a word means, and its URL; None without jobs.

    Raises:
        SelectionError: the word means jobs of several executors, or is the beginning of several ids.
    """
    found = [job for job in jobs if word in {job.native_id, job.array_native_id}] or match_jobs(word, jobs)
    origins = {job.origin.name: job.origin for job in found}
    if len(origins) > 1:
        msg = f"{' and '.join(sorted(origins))} have jobs that {word!r} means; name one of them with -x"
        raise SelectionError(msg)
    return next((it.asked_for for it in origins.values()), (None, None))


def array_elements(native_id: str, jobs: Iterable[StoredJob], executor: str, target: str) -> list[StoredJob]:
    """Return the jobs of the array with this native id on an executor; none if jpsi knows no such array."""
    own = (executor, target)
    found = [job for job in jobs if job.array_native_id == native_id]
    return match_jobs(native_id, [it for it in found if (it.origin.executor, it.origin.target) == own])


def named_jobs(word: str, jobs: Iterable[StoredJob], executor: str, target: str) -> list[StoredJob]:
    """Return the jobs of an executor that a word means which is no native id there."""
    return match_jobs(
        word, [it for it in jobs if (it.origin.executor, it.origin.target) == (executor, target)]
    )


def _follow(executor: jpsi.JobExecutor, native_id: str, name: str, *, as_json: bool) -> int:
    display = choose_display(as_json=as_json)
    events: SimpleQueue[jpsi.JobStatus] = SimpleQueue()
    job = jpsi.Job()
    job.set_job_status_callback(lambda _, status: events.put(status))
    executor.attach(job, native_id)
    if not as_json:
        _warn_if_not_found(executor, job, native_id, name)
    while True:
        try:
            status = events.get(timeout=_POLL_SECONDS)
        except Empty:
            messages.write(display.waiting(job.status))
            continue
        if status.reason is jpsi.Reason.ATTACH_UNVERIFIED and not as_json:
            # whatever the job does, it cannot be followed
            why = (status.message or "").removeprefix(f"{native_id!r} cannot be the native id of a job: ")
            messages.error(f"cannot follow {native_id} on {name}: {why}")
            return exit_codes.JPSI
        messages.write(display.status(job, status))
        if status.final:
            return exit_codes.for_status(status)


def _warn_if_not_found(executor: jpsi.JobExecutor, job: jpsi.Job, native_id: str, name: str) -> None:
    """Warn at once if the batch system does not mention the job or does not answer."""
    try:
        is_mentioned = executor.info(job) is not None
    except jpsi.JpsiError as e:
        if not job.status.final:
            messages.warning(f"{name}: {e}")
        return
    if not is_mentioned and not job.status.final:
        messages.warning(f"{name} knows no job {native_id}; jpsi asks again before it gives up")
