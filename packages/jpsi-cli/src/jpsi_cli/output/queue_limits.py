"""Finds jobs that can never start, from the limits of all queues and from the reasons why jobs wait.

`jpsi run`, `submit` and `validate` refuse such jobs; `run` and `explain` say by it what would have to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import attrs

import jpsi
from jpsi.plugin import components

from .quantities import format_size

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
    ("--memory", re.compile(r"\b(memory|mem)\b", re.IGNORECASE)),
    ("--cores", re.compile(r"\b(cores|processors|CPUs|ncpus)\b", re.IGNORECASE)),
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
    return f"it never starts like this: lower {' or '.join(options) or 'what it asks for'}"


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
    return [problem for it in _REQUESTS for problem in it.excess(spec, named)]


@attrs.frozen(slots=True)
class _Request:
    """A request of a job that queues limit."""

    option: str
    text: str
    of_job: Callable[[jpsi.JobSpec], Any]
    of_queue: Callable[[jpsi.Queue], Any]
    render: Callable[[Any], str] = str

    def excess(self, spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue]) -> Iterator[str]:
        """Yield that the job can never start, with the numbers, if each queue has a lower limit."""
        requested, limits = self.of_job(spec), {it.name: self.of_queue(it) for it in queues}
        # a duration of 0 asks the batch system for no time, so that its default applies
        if requested and all(it is not None and requested > it for it in limits.values()):
            yield (
                f"{self.option}: it asks for {self.text.format(self.render(requested))} and can never start; "
                + ", ".join(
                    f"the queue {name} has {self.render(it)}" if name else f"there are {self.render(it)}"
                    for name, it in limits.items()
                )
            )


def _requested_nodes(spec: jpsi.JobSpec) -> int | None:
    resources = spec.resources
    if not isinstance(resources, jpsi.ResourceSpecV1):
        return None
    is_counted = resources.node_count is not None or resources.processes_per_node is not None
    return resources.computed_node_count if is_counted else None


def _requested_cores(spec: jpsi.JobSpec) -> int:
    """Return the cores that the job has on one of its nodes at least."""
    # the batch system may place the processes of a job without a number of nodes as it likes
    return max(
        (it.cpu_cores_per_process or 1) * -(-it.computed_process_count // _most_nodes(it))
        for it in components(spec.resources)
    )


def _requested_cores_in_all(spec: jpsi.JobSpec) -> int:
    # with a number of nodes, the cores on one of them are compared
    if _requested_nodes(spec) is not None:
        return 0
    kinds = [it for it in components(spec.resources) if it.computed_process_count > 1]
    return sum((it.cpu_cores_per_process or 1) * it.computed_process_count for it in kinds)


def _requested_memory(spec: jpsi.JobSpec) -> int:
    """Return the memory that the job has on one of its nodes at least."""
    return max(-(-(it.memory or 0) // _most_nodes(it)) for it in components(spec.resources))


def _most_nodes(kind: jpsi.ResourceSpecV1) -> int:
    return _requested_nodes(jpsi.JobSpec(resources=kind)) or kind.computed_process_count


def _min_known(*numbers: int | None) -> int | None:
    return min((it for it in numbers if it is not None), default=None)


def _format_memory(size: int) -> str:
    """Return a size in whole mebibytes or more, as far as it is a number of them.

    >>> _format_memory(10**9), _format_memory(2**34)
    ('954M', '16G')
    """
    return format_size(-(-size // _MEBIBYTE) * _MEBIBYTE)


def _cores_in_all(queue: jpsi.Queue) -> int | None:
    nodes = _min_known(queue.nodes, queue.max_nodes)
    return None if nodes is None or queue.node_cores is None else nodes * queue.node_cores


def _max_walltime(queue: jpsi.Queue) -> timedelta | None:
    return queue.max_walltime or None


_MEBIBYTE = 2**20
_REQUESTS = (
    _Request("--nodes", "{} nodes", _requested_nodes, lambda it: _min_known(it.nodes, it.max_nodes)),
    _Request("--cores", "{} cores on one node", _requested_cores, lambda it: it.node_cores),
    _Request("--processes", "{} cores in all", _requested_cores_in_all, _cores_in_all),
    _Request("--memory", "{} on one node", _requested_memory, lambda it: it.node_memory, _format_memory),
    _Request("--time", "{}", lambda it: it.attributes.duration, _max_walltime),
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
    # the least request, which any queue can start, is not worth a query
    return any((it.of_job(spec) or 1) != 1 for it in _REQUESTS)
