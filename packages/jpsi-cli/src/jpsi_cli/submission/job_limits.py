"""Refuses jobs that can never start, before `jpsi run`, `submit`, `resubmit` and `validate` submit anything.

It also reports time limits that the batch system rounds up, queues that it does not list, and attributes
without an effect on this machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import jpsi
from jpsi.plugin import line
from jpsi.plugin.engine import dependencies
from jpsi_engine import QueueLimits, describe_ignored, describe_rounding, find_excess

from .. import messages
from ..error_boundary import translate_to_options

_SUBJECT = "the job"
# The fields of the requests that queues limit.
_FIELDS = {
    "nodes": "resources.node_count",
    "processes": "resources.process_count",
    "cores": "resources.cpu_cores_per_process",
    "memory": "resources.memory",
    "time": "attributes.duration",
}


def require_fit(
    executor: jpsi.JobExecutor,
    specs: Sequence[tuple[str, jpsi.JobSpec | None]],
    limits: QueueLimits | None = None,
) -> None:
    """Raise InvalidJobException if a job can never start in any queue; a failed query excludes nothing.

    Report it if the batch system rounds a time limit up.

    Args:
        executor: the executor of the jobs.
        specs: for each job, the file and line of its document, or an empty text, and its spec.
        limits: those of its queues, for callers that compare jobs with them more than once.
    """
    found = find_excess(executor, specs) if limits is None else limits.find_excess(specs)
    if found:
        by_place = dict(specs)
        described = [
            f"{_render_locations(places)}{_field(it.request, by_place[places[0]])}: {it.sentence}"
            for it, places in found.items()
        ]
        raise jpsi.InvalidJobException.of(_SUBJECT, described)
    unit = executor.system.capabilities.walltime_unit
    rounding = describe_rounding(executor.name, unit, (spec for _, spec in specs))
    if rounding is not None:
        messages.error(rounding)


def require_waits(executor: jpsi.JobExecutor, specs: Iterable[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Raise InvalidJobException if documents name jobs to wait for, and the executor never waits for a job.

    It names the options by which jpsi waits for them; the arguments are as above.
    """
    if executor.system.capabilities.dependencies:
        return
    places: dict[str, list[str]] = {}
    for location, spec in specs:
        if options := "" if spec is None else _after_options(spec):
            places.setdefault(options, []).append(location)
    if places:
        how = f"{executor.name} waits for no other job; jpsi does, with these in place of the document's"
        problems = [f"{_render_locations(it)}{how}: {options}" for options, it in places.items()]
        raise jpsi.InvalidJobException.of(_SUBJECT, problems)


def _after_options(spec: jpsi.JobSpec) -> str:
    """Return the options for the dependencies of a document, which are native ids; empty if it has none."""
    found = [(it.kind, str(it.job)) for it in dependencies(spec)]
    words = (job if kind is jpsi.DependencyKind.OK else f"{kind.value}:{job}" for kind, job in found)
    return line(*(part for it in words for part in ("--after", it)))


def require_valid(executor: jpsi.JobExecutor, specs: Iterable[tuple[str, jpsi.JobSpec]]) -> None:
    """Raise InvalidJobException if a job can never run as it is; the arguments are as above.

    A plugin that offers no check before the submission finds that only then.
    """
    places: dict[str, list[str]] = {}
    for location, spec in specs:
        for problem in _problems(executor, spec):
            places.setdefault(problem, []).append(location)
    if places:
        raise jpsi.InvalidJobException.of(
            _SUBJECT, [f"{_render_locations(it)}{problem}" for problem, it in places.items()]
        )


def _problems(executor: jpsi.JobExecutor, spec: jpsi.JobSpec) -> Sequence[str]:
    try:
        executor.preview(jpsi.Job(spec))
    except jpsi.InvalidJobException as e:
        return e.problems
    except jpsi.SubmitException:
        # it concerns no job
        return ()
    return ()


def report_unlisted(limits: QueueLimits, specs: Iterable[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Warn of queues that the batch system does not list; the specs are as above."""
    for why, places in limits.find_unlisted(specs).items():
        messages.warning(f"{_render_locations(places)}{why}")


@contextlib.contextmanager
def reporting_refused_queues(
    executor: jpsi.JobExecutor, specs: Sequence[tuple[str, jpsi.JobSpec | None]]
) -> Iterator[None]:
    """Warn of queues that the batch system does not list if it refuses a job within the block."""
    try:
        yield
    except (jpsi.InvalidJobException, jpsi.BulkException) as e:
        failures = e.failed.values() if isinstance(e, jpsi.BulkException) else [e]
        if any(isinstance(it, jpsi.InvalidJobException) for it in failures):
            report_unlisted(QueueLimits(executor), specs)
        raise


def report_ignored(executor: jpsi.JobExecutor, specs: Iterable[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Report once the requests of jobs that have no effect on this machine; the arguments are as above."""
    ignored = describe_ignored(executor.name, (spec for _, spec in specs), translate_to_options)
    if ignored is not None:
        messages.warning(ignored)


def _field(request: str, spec: jpsi.JobSpec | None) -> str:
    """Return the field that led to a request: it may be that of memory for each core."""
    resources = None if spec is None else spec.resources
    if isinstance(resources, jpsi.ResourceSpecV1):
        if request == "memory" and resources.memory is None:
            of_each = "memory_per_cpu" if resources.memory_per_gpu is None else "memory_per_gpu"
            return f"resources.{of_each}"
        if request == "nodes" and resources.node_count is None:
            return _FIELDS["processes"]
    return _FIELDS[request]


def _render_locations(locations: Iterable[str]) -> str:
    # the jobs of an array have one document
    first, *others = dict.fromkeys(locations)
    return f"{first}{f' and {len(others)} more' if others else ''}: " if first else ""
