"""Waits for jobs on disk to end, reports how they ended, and returns an exit code for that."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..output import CHECK_SECONDS, WaitReasons, describe_end, held_advice, with_advice
from . import job_json
from .deferred import await_submission
from .recall import RecalledJobs, recall_jobs, report_failures
from .selection import describe_predecessors, job_with_index

# The most ids in the command that releases jobs.
_MAX_NAMED = 3


def wait_for_ends(
    words: Collection[str], jobs: Sequence[StoredJob], deadline: float | None, *, as_json: bool
) -> int:
    """Wait for jobs, and return the exit code for their ends.

    Args:
        words: the words that selected the jobs.
        jobs: the jobs.
        deadline: when to stop waiting, in seconds of the monotonic clock; None is never.
        as_json: True to write each job as JSON to standard output.
    """
    awaited = await_submission(jobs, deadline)
    jobs, left_out = awaited.jobs, {*awaited.deferred_ids, *awaited.failures}
    recalled = recall_jobs(job for job in jobs if not job.status.final and job.id not in left_out)
    failures = {**awaited.failures, **recalled.failures}
    report_failures(failures)
    has_bar = os.isatty(messages.STDERR) and bool(recalled.jobs)
    seconds_left = None if deadline is None else max(0.0, deadline - time.monotonic())
    with reasons_reported(jobs, recalled):
        jpsi.wait_all(recalled.jobs.values(), seconds_left, progress=has_bar)
    ends = {job.id: recalled.best_status(job) for job in jobs}
    reported = [job for job in jobs if as_json or job.id not in failures]
    # they may have another native id by now
    resubmitted = [it for it in reported if it.id in recalled.jobs and it.spec.attributes.retry]
    reread = {job.id: job for job in job_store.reread(resubmitted)}
    notes = describe_predecessors(words, jobs)
    _report_ends([reread.get(it.id, it) for it in reported], ends, notes, as_json=as_json)
    if failures:
        return exit_codes.JPSI
    if not all(it.final for it in ends.values()):
        return exit_codes.TIMEOUT
    # of the first job that did not complete
    return next(filter(None, map(exit_codes.for_status, ends.values())), 0)


def _report_ends(
    jobs: Sequence[StoredJob],
    ends: Mapping[str, jpsi.JobStatus],
    notes: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    # the jobs of an array have one note
    reported = set[str]()
    for job in jobs:
        status = ends[job.id]
        if as_json:
            messages.show_json(job_json.summary_json(job, status), indent=None)
        elif not status.final:
            messages.error(f"{job_with_index(job)} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED:
            note = notes.get(job.id, "")
            shown = f"; {note}" if note and note not in reported else ""
            reported.add(note)
            messages.error(f"{job_with_index(job)}: {describe_end(status)}{shown}")


@contextlib.contextmanager
def reasons_reported(jobs: Sequence[StoredJob], recalled: RecalledJobs) -> Iterator[None]:
    """Report within the block why jobs wait, once they have waited for some seconds.

    It only looks at what the batch system has said to those who follow the jobs.
    """
    followed = {job.id: job for job in jobs if job.id in recalled.jobs}
    is_over = threading.Event()

    def watch() -> None:
        reasons = WaitReasons()
        while not is_over.wait(CHECK_SECONDS):
            new = reasons.check((it, recalled.jobs[it].status) for it in followed)
            for reason, ids in new.items():
                messages.error(_describe_wait(reason, [followed[it] for it in ids], len(followed)))

    thread = threading.Thread(target=watch, name="jpsi-reasons", daemon=True)
    # at the limit of threads and processes, the reasons alone are missing
    with contextlib.suppress(RuntimeError):
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        if thread.ident is not None:
            thread.join()


def _describe_wait(reason: str, waiting: Sequence[StoredJob], count: int) -> str:
    """Return why jobs wait, of all that are waited for, and how to release them if they are held."""
    names = [*dict.fromkeys(it.id if len(waiting) == 1 else it.array_id or it.id for it in waiting)]
    more = f" (and {len(names) - _MAX_NAMED} more)" if len(names) > _MAX_NAMED else ""
    named = " ".join(names[:_MAX_NAMED]) + more
    advice = held_advice(reason).format(it="it" if len(waiting) == 1 else "them", job=named)
    text = "; ".join(filter(None, [with_advice(reason), advice]))
    if count == 1:
        return f"{job_with_index(waiting[0])} waits: {text}"
    return f"{len(waiting)} of {count} jobs wait: {text}"
