"""Finds jobs that can never start, from the limits of all queues and from the reasons why jobs wait.

The commands that submit jobs refuse such jobs by it, and say of jobs that wait what would have to change.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeGuard, TypeVar

import attrs

import jpsi
from jpsi.plugin import components

_T = TypeVar("_T", bound=Hashable)

# The reasons of batch systems, in the words of their plugins, for which a job never starts.
_NEVER = re.compile(
    r"no node can ever|can never run|more than (its|the) \w+ allows|"
    r"more (nodes|time|memory|cores|processors|CPUs) than",
    re.IGNORECASE,
)
#: The custom attribute with the reason why jpsi chose the queue of a job.
QUEUE_REASON = "jpsi.queue_reason"
# The beginning of the names of custom attributes that are no options of a batch system.
_OWN_ATTRIBUTES = "jpsi."
# The name of one queue, and not a list, a pattern, or the queue of another server.
_PLAIN_NAME = re.compile(r"[\w.-]+")
# How many of the queues are named that the batch system lists.
_MAX_NAMED = 10
_WORDS = (
    ("nodes", re.compile(r"\bnodes\b", re.IGNORECASE)),
    ("time", re.compile(r"\btime\b", re.IGNORECASE)),
    ("memory", re.compile(r"\b(memory|mem)\b", re.IGNORECASE)),
    ("cores", re.compile(r"\b(cores|processors|CPUs|ncpus)\b", re.IGNORECASE)),
)


def describe_never(reason: str, prefix: str = "") -> str | None:
    """Return what to change, if a job that waits for this reason never starts; None if it may start.

    >>> describe_never("the job requests more time than its partition allows", "--")
    'it never starts like this: lower --time'

    Args:
        reason: why the job waits, in the words of a plugin.
        prefix: of the names of requests, such as that of the options of a command.
    """
    # a partition with nodes that are down may have enough of them later
    if not _NEVER.search(reason) or "or has up" in reason:
        return None
    requests = [f"{prefix}{it}" for it, words in _WORDS if words.search(reason)]
    return f"it never starts like this: lower {' or '.join(requests) or 'what it asks for'}"


@attrs.frozen(slots=True)
class Excess:
    """A request of a job with which no queue can ever start it."""

    #: `nodes`, `cores`, `memory` or `time`.
    request: str
    #: The sentence about it, with the numbers.
    sentence: str


def choose_queue(
    spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue], preferred: Sequence[str] = ()
) -> tuple[str | None, str]:
    """Return a queue that takes a job, and why it was chosen; None, and the numbers, if none takes it.

    Of those that fit, queues that start no jobs come last. It is the first of `preferred`, or else the one
    with the smallest limits: of time, then of nodes, memory and cores; of those for some users alone only if
    no other fits. A limit that is not known counts as none. Of queues that are alike it is the default, or
    the first. A job with GPUs gets a queue of which the batch system tells that it has some; if it tells that
    of none, a choice would be a guess.
    """
    needs_gpus = any(it.gpu_cores_per_process for it in components(spec.resources))
    are_gpus_told = any(it.has_gpus for it in queues)
    lacking_gpus = ((None, False) if are_gpus_told else (False,)) if needs_gpus else ()
    judged = [(queue, _refusal(spec, queue, lacking_gpus)) for queue in queues]
    fitting = [queue for queue, why in judged if why is None]
    words = [f"{queue.name or 'the only queue'} {why}" for queue, why in judged if why is not None]
    if not fitting:
        return None, _none_takes(spec, queues, words, needs_gpus=needs_gpus)
    ranks = {name: rank for rank, name in reversed([*enumerate(preferred)])}
    best = min(
        fitting,
        key=lambda it: (
            it.is_started is False,
            ranks.get(it.name, len(ranks)),
            it.is_restricted,
            _size(it),
            not it.is_default,
        ),
    )
    if needs_gpus and not are_gpus_told and len(fitting) > 1 and best.name not in ranks:
        names = ", ".join(it.name for it in fitting)
        return None, f"the batch system does not tell which queues have GPUs; name one of {names}"
    if len(queues) == 1:
        return best.name, "it is the only queue"
    why_best = "the configuration prefers it" if best.name in ranks else _why_smallest(best)
    others = [f"{it.name} fits, too" for it in fitting if it is not best]
    return best.name, "; ".join([why_best, *others, *words])


def _refusal(spec: jpsi.JobSpec, queue: jpsi.Queue, lacking_gpus: Collection[bool | None]) -> str | None:
    """Return why a queue does not take a job, in words that follow its name; None if it does.

    Args:
        spec: the job.
        queue: the queue.
        lacking_gpus: the values of `has_gpus` with which a queue does not take it.
    """
    if queue.is_open is False:
        return "takes no jobs"
    if limits := [it.describe_limit(queue) for it in _LIMITS if it.is_outside(spec, queue)]:
        return f"has {' and '.join(limits)}"
    return "is not known to have GPUs" if queue.has_gpus in lacking_gpus else None


def _none_takes(
    spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue], words: Sequence[str], *, needs_gpus: bool
) -> str:
    exceeding = [it for it in _LIMITS if any(it.is_outside(spec, queue) for queue in queues)]
    requests = [*(it.describe(it.of_job(spec)) for it in exceeding), *(["GPUs"] if needs_gpus else [])]
    request = f" that asks for {' and '.join(dict.fromkeys(requests))}" if requests else ""
    return f"no queue takes a job{request}: {', '.join(words) or 'the batch system names none'}"


def _why_smallest(queue: jpsi.Queue) -> str:
    if min(_size(queue)) < math.inf:
        return "its limits are the smallest that suffice"
    return f"it has no known limits, and is the {'default' if queue.is_default else 'first such'} queue"


def within_queue(
    grown: jpsi.JobSpec, requested: jpsi.JobSpec, queues: Callable[[], Sequence[jpsi.Queue]]
) -> tuple[jpsi.JobSpec, str]:
    """Return the spec of another attempt, with no more than the queue allows that the job names.

    If that is no more than the attempt before has requested, a clause says so; it is empty otherwise. Limits
    that are not known, or that options of the batch system may lift, are none, as those of a queue that jpsi
    chooses.

    Args:
        grown: the spec with more memory or time.
        requested: the spec of the attempt before.
        queues: returns the queues; it is called if the job names one.
    """
    attributes, resources = grown.attributes, grown.resources
    is_chosen = QUEUE_REASON in (attributes.custom_attributes or ())
    named = None if is_chosen or _may_lift_limits(attributes) else attributes.queue_name
    queue = next((it for it in (queues() if named else ()) if it.name == named), None)
    if queue is None:
        return grown, ""
    # a limit of what does not grow did not keep the attempt before from running
    growing = [it for it in _REQUESTS if it.of_job(grown) != it.of_job(requested)]
    for limit in (it for it in growing if it.is_outside(grown, queue)):
        if isinstance(resources, jpsi.ResourceSpecV1) and limit.name == "memory":
            nodes = _most_nodes(resources) if limit.of_queue is _node_memory else 1
            resources = attrs.evolve(resources, memory=nodes * limit.of_queue(queue))
        elif limit.name == "time":
            attributes = attrs.evolve(attributes, duration=limit.of_queue(queue))
        bounded = attrs.evolve(grown, resources=resources, attributes=attributes)
        if limit.of_job(bounded) <= limit.of_job(requested):
            return grown, f"the queue {queue.name} has {limit.describe_limit(queue)}, which it had requested"
        grown = bounded
    return grown, ""


def reopen_queue(spec: jpsi.JobSpec) -> jpsi.JobSpec:
    """Return the spec of a stored job for another submission: a queue that jpsi chose is chosen again."""
    custom = dict(spec.attributes.custom_attributes or {})
    if custom.pop(QUEUE_REASON, None) is None:
        return spec
    queue_name = jpsi.JobAttributes.AUTO_QUEUE
    attributes = attrs.evolve(spec.attributes, queue_name=queue_name, custom_attributes=custom or None)
    return attrs.evolve(spec, attributes=attributes)


def _size(queue: jpsi.Queue) -> Sequence[float]:
    time = _max_walltime(queue)
    sizes = _min_known(queue.max_nodes, queue.nodes), queue.node_memory, queue.node_cores
    return [math.inf if time is None else time.total_seconds(), *(it or math.inf for it in sizes)]


def excess_over_queues(spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue]) -> list[Excess]:
    """Return for which requests no queue can ever start a job; none if one may.

    A job that names its queue is compared with that alone. Limits that are not known exclude nothing, nor do
    any if the job has options of the batch system, which may lift them.
    """
    attributes = spec.attributes
    if _may_lift_limits(attributes):
        return []
    named = [it for it in queues if attributes.queue_name in {None, it.name}]
    if not named:
        return []
    return [problem for it in _REQUESTS for problem in it.excess(spec, named)]


def _may_lift_limits(attributes: jpsi.JobAttributes) -> bool:
    options = [it for it in attributes.custom_attributes or () if not it.startswith(_OWN_ATTRIBUTES)]
    return bool(options or attributes.reservation_id)


@attrs.frozen(slots=True)
class _Request:
    """A request of a job that queues limit."""

    name: str
    text: str
    of_job: Callable[[jpsi.JobSpec], Any]
    of_queue: Callable[[jpsi.Queue], Any]
    render: Callable[[Any], str] = str
    #: True if the limit is what a job must request at least.
    is_least: bool = False

    def describe(self, amount: Any) -> str:  # noqa: ANN401  of any request
        """Return an amount in words."""
        return self.text.format(self.render(amount))

    def describe_limit(self, queue: jpsi.Queue) -> str:
        """Return the limit of a queue in words."""
        return f"{'at least ' if self.is_least else ''}{self.describe(self.of_queue(queue))}"

    def is_outside(self, spec: jpsi.JobSpec, queue: jpsi.Queue) -> bool:
        """Return True if a job requests more than a queue allows, or less."""
        requested, limit = self.of_job(spec), self.of_queue(queue)
        # a duration of 0 asks the batch system for no time, so that its default applies
        if not requested or limit is None:
            return False
        return bool(requested < limit if self.is_least else requested > limit)

    def excess(self, spec: jpsi.JobSpec, queues: Sequence[jpsi.Queue]) -> Iterator[Excess]:
        """Yield that the job can never start, with the numbers, if each queue has a lower limit."""
        if all(self.is_outside(spec, it) for it in queues):
            limits = {it.name: self.of_queue(it) for it in queues}
            queue_limits = ", ".join(
                f"the queue {name} has {self.render(it)}" if name else f"there are {self.render(it)}"
                for name, it in limits.items()
            )
            amount = self.of_job(spec)
            request = self.describe(amount)
            kinds = components(spec.resources)
            if self.of_queue is _node_memory and len(kinds) == 1 and (whole := _memory_of(kinds[0])) > amount:
                request += f" ({self.render(whole)} in all)"
            yield Excess(self.name, f"it asks for {request} and can never start; {queue_limits}")


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
    return max(map(_cores_of, kinds), default=0)


def _requested_memory(spec: jpsi.JobSpec) -> int:
    """Return the memory that the job has on one of its nodes at least."""
    return max(-(-(it.computed_memory or 0) // _most_nodes(it)) for it in components(spec.resources))


def _largest(of_kind: Callable[[jpsi.ResourceSpecV1], int]) -> Callable[[jpsi.JobSpec], int]:
    # each kind may be a job of its own, with limits of its own
    return lambda spec: max(map(of_kind, components(spec.resources)))


def _cores_of(kind: jpsi.ResourceSpecV1) -> int:
    return kind.computed_core_count


def _memory_of(kind: jpsi.ResourceSpecV1) -> int:
    return kind.computed_memory or 0


def _most_nodes(kind: jpsi.ResourceSpecV1) -> int:
    return _requested_nodes(jpsi.JobSpec(resources=kind)) or kind.computed_process_count


def _min_known(*numbers: int | None) -> int | None:
    return min((it for it in numbers if it is not None), default=None)


def _format_memory(size: int) -> str:
    """Return a size in whole mebibytes or more, as far as it is a number of them.

    >>> _format_memory(10**9), _format_memory(2**34)
    ('954M', '16G')
    """
    count = -(-size // _MEBIBYTE)
    for unit in "MGT":
        if count % 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}P"


def _node_memory(queue: jpsi.Queue) -> int | None:
    return queue.node_memory


def _cores_in_all(queue: jpsi.Queue) -> int | None:
    nodes = _min_known(queue.nodes, queue.max_nodes)
    return None if nodes is None or queue.node_cores is None else nodes * queue.node_cores


def _max_walltime(queue: jpsi.Queue) -> timedelta | None:
    return queue.max_walltime or None


def _format_time(time: timedelta) -> str:
    return "no limit of time" if time == timedelta.max else str(time)


_MEBIBYTE = 2**20
_REQUESTS = (
    _Request("nodes", "{} nodes", _requested_nodes, lambda it: _min_known(it.nodes, it.max_nodes)),
    _Request("cores", "{} cores on one node", _requested_cores, lambda it: it.node_cores),
    _Request("processes", "{} cores in all", _requested_cores_in_all, _cores_in_all),
    _Request("memory", "{} on one node", _requested_memory, _node_memory, _format_memory),
    _Request("cores", "{} cores in all", _largest(_cores_of), lambda it: it.max_cores),
    _Request("memory", "{} in all", _largest(_memory_of), lambda it: it.max_memory, _format_memory),
    _Request("time", "{}", lambda it: it.attributes.duration, _max_walltime, _format_time),
)
_LIMITS = (
    *_REQUESTS,
    _Request("nodes", "{} nodes", _largest(_most_nodes), lambda it: it.min_nodes, is_least=True),
    _Request("cores", "{} cores in all", _largest(_cores_of), lambda it: it.min_cores, is_least=True),
    _Request(
        "memory", "{} in all", _largest(_memory_of), lambda it: it.min_memory, _format_memory, is_least=True
    ),
    _Request(
        "time",
        "{}",
        lambda it: it.attributes.duration,
        lambda it: it.min_walltime,
        _format_time,
        is_least=True,
    ),
)


def find_excess(
    executor: jpsi.JobExecutor, specs: Iterable[tuple[_T, jpsi.JobSpec | None]]
) -> dict[Excess, list[_T]]:
    """Return the requests of jobs with which no queue can ever start them, as `QueueLimits` finds them."""
    return QueueLimits(executor).find_excess(specs)


@attrs.define(slots=True)
class QueueLimits:
    """Compares jobs with the queues of their executor, which it queries once, when a job needs that.

    A failed query excludes nothing. Jobs are pairs of a word for the job and its spec.
    """

    _executor: jpsi.JobExecutor
    _queues: Sequence[jpsi.Queue] | None = attrs.field(default=None, init=False)

    def find_excess(self, specs: Iterable[tuple[_T, jpsi.JobSpec | None]]) -> dict[Excess, list[_T]]:
        """Return the requests with which no queue can ever start jobs, each with these jobs' words."""
        found: dict[Excess, list[_T]] = {}
        for word, spec in specs:
            if spec is not None and _has_limited_request(spec):
                for excess in excess_over_queues(spec, self._listed()):
                    found.setdefault(excess, []).append(word)
        return found

    def find_unlisted(self, specs: Iterable[tuple[_T, jpsi.JobSpec | None]]) -> dict[str, list[_T]]:
        """Return sentences about queues of jobs that the batch system does not list, with the jobs' words.

        It may have them all the same: sites hide queues.
        """
        found: dict[str, list[_T]] = {}
        for word, spec in specs:
            name = None if spec is None else spec.attributes.queue_name
            if _is_plain(name) and (why := describe_unlisted(name, self._listed(), self._executor.name)):
                found.setdefault(why, []).append(word)
        return found

    def _listed(self) -> Sequence[jpsi.Queue]:
        if self._queues is None:
            self._queues = _query(self._executor)
        return self._queues


def _query(executor: jpsi.JobExecutor) -> Sequence[jpsi.Queue]:
    try:
        return executor.system.queues() if executor.system.has_commands else ()
    except jpsi.JpsiError:
        return ()


def _is_plain(name: object) -> TypeGuard[str]:
    # the validation of the job reports a name of a wrong type
    is_text = isinstance(name, str) and _PLAIN_NAME.fullmatch(name) is not None
    return is_text and name != jpsi.JobAttributes.AUTO_QUEUE


def describe_unlisted(name: object, queues: Iterable[jpsi.Queue], system: str) -> str | None:
    """Return that a queue is none of those that the batch system lists; None if it is one, or may be.

    Args:
        name: the queue of a job, which may also be a list or a pattern.
        queues: those that the batch system lists.
        system: the name of the batch system.
    """
    listed = [it.name for it in queues if it.name]
    if not listed or not _is_plain(name) or name in listed:
        return None
    more = f" and {len(listed) - _MAX_NAMED} more" if len(listed) > _MAX_NAMED else ""
    nearest = difflib.get_close_matches(name, listed, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    names = f"{', '.join(listed[:_MAX_NAMED])}{more}"
    return f"the queue {name} is none of those that {system} lists: {names}{hint}"


def _has_limited_request(spec: jpsi.JobSpec) -> bool:
    # the least request, which any queue can start, is not worth a query
    return any((it.of_job(spec) or 1) != 1 for it in _REQUESTS)
