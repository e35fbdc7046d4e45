"""Refuses jobs that no queue can ever start, before `jpsi run`, `submit` and `validate` submit anything."""

from __future__ import annotations

from collections.abc import Iterable

import jpsi
from jpsi_engine import find_excess


def require_fit(executor: jpsi.JobExecutor, specs: Iterable[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Raise InvalidJobException if a job can never start in any queue; a failed query excludes nothing.

    Args:
        executor: the executor of the jobs.
        specs: for each job, the file and line of its document, or an empty text, and its spec.
    """
    found = find_excess(executor, specs)
    if found:
        subject = "the job"
        described = [
            f"{_render_locations(places)}--{it.request}: {it.sentence}" for it, places in found.items()
        ]
        raise jpsi.InvalidJobException.of(subject, described)


def _render_locations(locations: Iterable[str]) -> str:
    # the jobs of an array have one document
    first, *others = dict.fromkeys(locations)
    return f"{first}{f' and {len(others)} more' if others else ''}: " if first else ""
