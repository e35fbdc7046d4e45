"""Refuses jobs that no queue can ever start, before `jpsi run`, `submit` and `validate` submit anything.

It also reports time limits that the batch system rounds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import jpsi
from jpsi_engine import find_excess

from .. import messages


def require_fit(executor: jpsi.JobExecutor, specs: Sequence[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Raise InvalidJobException if a job can never start in any queue; a failed query excludes nothing.

    Report it if the batch system rounds a time limit up.

    Args:
        executor: the executor of the jobs.
        specs: for each job, the file and line of its document, or an empty text, and its spec.
    """
    found = find_excess(executor, specs)
    if found:
        subject = "the job"
        by_place = dict(specs)
        described = [
            f"{_render_locations(places)}--{_option(it.request, by_place[places[0]])}: {it.sentence}"
            for it, places in found.items()
        ]
        raise jpsi.InvalidJobException.of(subject, described)
    unit = executor.system.capabilities.walltime_unit
    durations = {spec.attributes.duration for _, spec in specs if spec is not None}
    rounded = sorted(it for it in durations if it and it % unit)
    # some executors, such as local, keep fractions of a second
    if rounded and unit > timedelta(seconds=1):
        others = f", and {len(rounded) - 1} more" if len(rounded) > 1 else ""
        limit = -(-rounded[0] // unit) * unit
        messages.error(f"{executor.name} rounds the time limit {rounded[0]} up to {limit}{others}")


def _option(request: str, spec: jpsi.JobSpec | None) -> str:
    """Return the option that led to a request: it may be that of memory for each core."""
    resources = None if spec is None else spec.resources
    if not isinstance(resources, jpsi.ResourceSpecV1):
        return request
    if request == "memory" and resources.memory is None:
        return "mem-per-cpu" if resources.memory_per_gpu is None else "mem-per-gpu"
    return "processes" if request == "nodes" and resources.node_count is None else request


def _render_locations(locations: Iterable[str]) -> str:
    # the jobs of an array have one document
    first, *others = dict.fromkeys(locations)
    return f"{first}{f' and {len(others)} more' if others else ''}: " if first else ""
