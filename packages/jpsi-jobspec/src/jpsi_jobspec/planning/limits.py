"""Limits of the queues of a batch system; the chooser leaves out alternatives that no queue takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import timedelta

import attrs

from jpsi import JobExecutor, JpsiError, Queue

from ..document import Document, Group, Shape, Task


@attrs.frozen(slots=True, kw_only=True)
class Limit:
    """The limits of one queue; None is no limit, or none that is known."""

    queue: str
    nodes: int | None = None
    seconds: float | None = None

    def accepts(self, shape: Shape, duration: timedelta | None) -> bool:
        """Return True if the queue takes a job of this shape and duration; None is within any limit."""
        has_nodes = self.nodes is None or (shape.nodes or 1) <= self.nodes
        return has_nodes and (
            self.seconds is None or (duration or timedelta()).total_seconds() <= self.seconds
        )


def has_choice(document: Document) -> bool:
    """Return True if a task or group at the top names alternatives."""
    requesters: list[Task | Group] = [*document.tasks, *document.groups.values()]
    return any(it.resources is not None and len(it.resources.alternatives) > 1 for it in requesters)


def has_pieces(document: Document) -> bool:
    """Return True if a task at the top names several resources at once."""
    named = (it.resources.alternatives for it in document.tasks if it.resources is not None)
    return any(len(names) > 1 for alternatives in named for names in alternatives)


def supports_heterogeneous_jobs(target: str) -> bool:
    """Return True if jobs of a target may have slots of several kinds; False if there is no such target."""
    with contextlib.suppress(JpsiError), JobExecutor(target) as executor:
        return executor.system.capabilities.heterogeneous
    return False


def default_duration(target: str) -> timedelta | None:
    """Return the walltime of a target's jobs without a duration; None if there is no such target."""
    with contextlib.suppress(JpsiError), JobExecutor(target) as executor:
        return executor.system.default_duration
    return None


def queue_limits(target: str) -> tuple[Limit, ...]:
    """Return the limits of all open queues; none if the batch system reports none."""
    # a plan needs no batch system
    with contextlib.suppress(JpsiError), JobExecutor(target) as executor:
        return tuple(queue_limit(it) for it in executor.system.queues() if it.is_open is not False)
    return ()


def queue_limit(queue: Queue) -> Limit:
    """Return the limits of a queue."""
    nodes = [it for it in (queue.max_nodes, queue.nodes) if it is not None]
    seconds = queue.max_walltime.total_seconds() if queue.max_walltime else None
    return Limit(queue=queue.name, nodes=min(nodes, default=None), seconds=seconds)


def explain_refusal(limits: Iterable[Limit], shape: Shape, duration: timedelta | None) -> str | None:
    """Return why no queue takes a job; None if one does, or no limits are known."""
    known = list(limits)
    if not known or any(it.accepts(shape, duration) for it in known):
        return None
    duration_text = f" for {duration}" if duration else ""
    limits_text = ", ".join(f"{it.queue} {_render_limit(it)}" for it in known)
    return f"no queue takes {shape}{duration_text}: {limits_text}"


def _render_limit(it: Limit) -> str:
    nodes = f"{it.nodes} nodes" if it.nodes is not None else "any nodes"
    return nodes if it.seconds is None else f"{nodes} for {timedelta(seconds=it.seconds)}"
