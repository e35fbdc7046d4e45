"""Finds the jobs on disk that repeat others, as `jpsi resubmit` makes them, and describes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jpsi import JobState
from jpsi_engine.job_store import StoredJob

from ..output import summarize_states

# How a sentence about a job, or about several, goes on.
_STATES = {
    JobState.COMPLETED: ("completed", "completed"),
    JobState.FAILED: ("failed", "failed"),
    JobState.CANCELED: ("was cancelled", "were cancelled"),
}


def find_repetitions(jobs: Sequence[StoredJob]) -> Mapping[str, StoredJob]:
    """Return the last job that repeats each of others, by the ids of these, without those that can never run.

    A job whose repetition can never run, or has failed, is repeated by what repeats that.

    Args:
        jobs: all jobs, the oldest first.
    """
    found: dict[str, StoredJob] = {}
    for job in reversed(jobs):
        original = job.repeats
        if original is None:
            continue
        later = found.get(job.id) if has_failed(job) or was_not_submitted(job) else None
        if later is not None or not was_not_submitted(job):
            found.setdefault(original, later or job)
    return found


def has_failed(job: StoredJob) -> bool:
    """Return True if a job has ended, and not well."""
    return job.status.final and job.status.state is not JobState.COMPLETED


def was_not_submitted(job: StoredJob) -> bool:
    """Return True if the submission of a job has failed, and no process is to repeat it."""
    return job.is_unsent and job.deferral is None


def describe_repetitions(
    jobs: Sequence[StoredJob], repetitions: Mapping[str, StoredJob], ids: Mapping[str, str]
) -> str:
    """Return what has become of the repetitions of jobs, as they are on disk; empty if there are none.

    Args:
        jobs: the jobs that have failed.
        repetitions: as `find_repetitions` returns it.
        ids: the ids of jobs and arrays as shown.
    """
    found = [repetitions[job.id] for job in jobs if job.id in repetitions]
    if not found:
        return ""
    names = list(dict.fromkeys(it.id if len(found) == 1 else it.array_id or it.id for it in found))
    is_one = len(names) == 1
    who = ids.get(names[0], names[0]) + ("" if is_one else f" and {len(names) - 1} more")
    states = Counter(it.status.state for it in found)
    if all(it.status.final for it in found):
        verb = "has repeated" if is_one else "have repeated"
    else:
        verb = "repeats" if is_one else "repeat"
    all_of_them = "it" if len(jobs) == 1 else "them"
    whom = all_of_them if len(found) == len(jobs) else f"{len(found)} of them"
    end = (
        f": {summarize_states(states)}"
        if len(states) > 1
        else f", and {_describe_end(jobs, found, is_one=is_one)}"
    )
    return f"{who} {verb} {whom}{end}"


def _describe_end(jobs: Sequence[StoredJob], found: Sequence[StoredJob], *, is_one: bool) -> str:
    """Return the end of a sentence about repetitions that are all in one state."""
    state = found[0].status.state
    one, several = _STATES.get(state, (f"is {state}", f"are {state}"))
    too = ", too" if all(job.status.state is state for job in jobs) else ""
    return f"{one if is_one else several}{too}"
