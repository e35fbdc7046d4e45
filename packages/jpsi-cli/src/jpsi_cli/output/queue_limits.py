"""Finds jobs that can never start, from the limits of all queues and from the reasons why jobs wait.

`jpsi run`, `submit` and `validate` refuse such jobs; `run` and `explain` say by it what would have to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

import jpsi

# The reasons of batch systems, in the words of their plugins, for which a job never starts.
_NEVER = re.compile(
    r"no node can ever|can never run|more than (its|the) \w+ allows|"
    r"more (nodes|time|memory|cores|processors|CPUs) than",
    re.IGNORECASE,
)
# The beginning of the names of custom attributes that are no options of a batch system.
_OWN_ATTRIBUTES = "jpsi."
_OPTIONS = (
    ("--nodes", re.compile(r"\bnodes\b", re.IGNORECASE)),
    ("--time", re.compile(r"\btime\b", re.IGNORECASE)),
    ("--memory", re.compile(r"\bmemory\b", re.IGNORECASE)),
    ("--cores", re.compile(r"\b(cores|processors|CPUs)\b", re.IGNORECASE)),
)


def describe_never(reason: str) -> str | None:
    """Return what to change, if a job that waits for this reason never starts; None if it may start.

    >>> describe_never("the job requests more time than its partition allows")
    'it never starts like this: lower --time'
    """
    # a partition with nodes that are down may have enough of them later
    if not _NEVER.search(reason) or "or has up" in reason:
        return None
    options = [option for option, words in _OPTIONS if words.search(reason)]
    return f"it never starts like this: lower {' or '.join(options) or 'its requests'}"


def excess_over_queues(spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue]) -> list[str]:
    """Return for which requests no queue can ever start a job, with the numbers; none if one may.

    A job that names its queue is compared with that alone. Limits that are not known exclude nothing, nor do
    any if the job has options of the batch system, which may lift them.
    """
    attributes = spec.attributes
    options = [it for it in attributes.custom_attributes or () if not it.startswith(_OWN_ATTRIBUTES)]
    if options or attributes.reservation_id:
        return []
    named = [it for it in queues if attributes.queue_name in {None, it.name}]
    if not named:
        return []
    return [*_excess_nodes(spec, named), *_excess_time(attributes.duration, named)]


def _excess_nodes(spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue]) -> Iterator[str]:
    nodes = _requested_nodes(spec)
    limits = {it.name: _min_known(it.nodes, it.max_nodes) for it in queues}
    if nodes is not None and all(it is not None and nodes > it for it in limits.values()):
        yield f"--nodes: the job requests {nodes} nodes and can never start; {_render_limits(limits)}"


def _excess_time(duration: timedelta | None, queues: Sequence[jpsi.Queue]) -> Iterator[str]:
    limits = {it.name: it.max_walltime for it in queues}
    # a duration of 0 asks the batch system for no time, so that its default applies
    if duration and all(it and duration > it for it in limits.values()):
        yield f"--time: the job requests {duration} and can never start; {_render_limits(limits)}"


def _requested_nodes(spec: jpsi.JobSpec) -> int | None:
    resources = spec.resources
    if not isinstance(resources, jpsi.ResourceSpecV1):
        return None
    is_counted = resources.node_count is not None or resources.processes_per_node is not None
    return resources.computed_node_count if is_counted else None


def _min_known(*numbers: int | None) -> int | None:
    return min((it for it in numbers if it is not None), default=None)


def _render_limits(limits: Mapping[str, object]) -> str:
    return ", ".join(
        f"the queue {name} has {limit}" if name else f"there are {limit}" for name, limit in limits.items()
    )


def require_fit(executor: jpsi.JobExecutor, specs: Iterable[tuple[str, jpsi.JobSpec | None]]) -> None:
    """Raise InvalidJobException if a job can never start in any queue; a failed query excludes nothing.

    Args:
        executor: the executor of the jobs.
        specs: for each job, the file and line of its document, or an empty text, and its spec.
    """
    counted = [(place, it) for place, it in specs if it is not None and _has_limited_request(it)]
    if not counted or not executor.system.has_commands:
        return
    try:
        queues = executor.system.queues()
    except jpsi.JpsiError:
        return
    problems: dict[str, list[str]] = {}
    for location, spec in counted:
        for problem in excess_over_queues(spec, queues):
            problems.setdefault(problem, []).append(location)
    if problems:
        subject = "the job"
        described = [f"{_render_locations(places)}{problem}" for problem, places in problems.items()]
        raise jpsi.InvalidJobException.of(subject, described)


def _render_locations(locations: Iterable[str]) -> str:
    # the jobs of an array have one document
    first, *others = dict.fromkeys(locations)
    return f"{first}{f' and {len(others)} more' if others else ''}: " if first else ""


def _has_limited_request(spec: jpsi.JobSpec) -> bool:
    return bool(spec.attributes.duration) or (_requested_nodes(spec) or 1) > 1
