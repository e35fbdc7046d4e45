"""Groups jobs that are alike, of which `jpsi explain` explains one.

Jobs of one array, name or program that ended in the same way may have failed for different reasons. What they
wrote last tells these apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jpsi_engine.job_store import StoredJob

from ..stored_jobs import has_failed
from .diagnosis import OWN_REASONS

# Of more kinds of last lines, only one is explained, with a remark that others differ.
_MOST_KINDS = 5
# A word with one of these is a number, a name or a path, and likely to differ from job to job.
_OF_ONE_JOB = set("0123456789/'\"")


def group_alike(
    jobs: Iterable[StoredJob], last_line: Callable[[StoredJob], str | None]
) -> list[list[StoredJob]]:
    """Return jobs in groups of those that are alike.

    Args:
        jobs: the jobs, each with a status.
        last_line: returns the last line of a job's standard error; None if that is unknown.
    """
    groups: dict[object, list[StoredJob]] = {}
    for it in jobs:
        status, whose = it.status, it.array_id or it.name or it.spec.executable
        groups.setdefault((whose, status.state, status.reason, status.exit_code), []).append(it)
    return [kind for group in groups.values() for kind in _split(group, last_line)]


def differ(jobs: Sequence[StoredJob], last_line: Callable[[StoredJob], str | None]) -> bool:
    """Return True if jobs that are alike may have failed for different reasons."""
    if not _has_own_reason(jobs):
        return False
    lines = {last_line(it) for it in jobs}
    return None in lines or len(lines) > 1


def _split(group: list[StoredJob], last_line: Callable[[StoredJob], str | None]) -> Sequence[list[StoredJob]]:
    if not _has_own_reason(group):
        return [group]
    kinds: dict[object, list[StoredJob]] = {}
    for it in group:
        text = last_line(it)
        kinds.setdefault(_form(text) if text else text, []).append(it)
    return [group] if len(kinds) > _MOST_KINDS or None in kinds else list(kinds.values())


def _has_own_reason(jobs: Sequence[StoredJob]) -> bool:
    return len(jobs) > 1 and has_failed(jobs[0]) and jobs[0].status.reason in OWN_REASONS


def _form(text: str) -> tuple[str, ...]:
    """Return the words of a message that are the same for all jobs with that message.

    >>> _form("cat: sample-42: No such file"), _form("KeyError: 'a'")
    (('cat:', 'No', 'such', 'file'), ('KeyError:',))
    """
    return tuple(it for it in text.split() if _OF_ONE_JOB.isdisjoint(it))
