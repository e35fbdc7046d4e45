"""Decides the next step for an entry of a plan from the states of its dependencies: pure functions.

The driver asks it which entries can start, and `dependencies` which of them the batch system can wait for.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from jpsi import JobState

from ..document import When
from ..planning import After, Entry
from ..run_store import Part

T = TypeVar("T")


def select_replicas(replicas: Sequence[T], after: After, replica: int | None) -> Sequence[T]:
    """Return those of an entry's replicas that one dependency of a replica is about."""
    if after.each and replica is not None and replica <= len(replicas):
        return [replicas[replica - 1]]
    return replicas


#: The states of the replicas of each entry; NEW is not submitted yet.
States = Mapping[str, Sequence[JobState]]


class Next(enum.Enum):
    """The next step of the driver for an entry."""

    #: All its dependencies are met.
    START = "start"
    #: All its dependencies were submitted, and none has ended otherwise than it should.
    HAND_OVER = "hand over"
    WAIT = "wait"
    #: A dependency has ended otherwise than it should.
    NEVER = "never"


def next_step(entry: Entry, states: States, replica: int | None = None) -> Next:
    """Return what to do with an entry, or with one of its replicas.

    With `replica`, a dependency that is replica by replica considers that one only.
    """
    found = {dependency_step(it, states, replica) for it in entry.after}
    if Next.NEVER in found:
        return Next.NEVER
    if entry.when is When.ON_FAILURE:
        if found & {Next.WAIT, Next.HAND_OVER}:
            return Next.WAIT
        ended = [state for it in entry.after for state in states[it.id]]
        return Next.START if any(it is not JobState.COMPLETED for it in ended) else Next.NEVER
    return next((it for it in (Next.WAIT, Next.HAND_OVER) if it in found), Next.START)


def dependency_step(after: After, states: States, replica: int | None = None) -> Next:
    """Return what one dependency allows for an entry, or for one of its replicas."""
    dependency_states = select_replicas(states[after.id], after, replica)
    if after.when == "started":
        return _started_step(dependency_states)
    has_failed = any(it.final and it is not JobState.COMPLETED for it in dependency_states)
    if has_failed and after.when != "any":
        return Next.START if after.when == "failed" else Next.NEVER
    if all(it.final for it in dependency_states):
        return Next.NEVER if after.when == "failed" else Next.START
    # a batch system can wait for all of them, but not for the first one that fails
    can_wait = after.when != "failed" or len(dependency_states) == 1
    return Next.HAND_OVER if can_wait and JobState.NEW not in dependency_states else Next.WAIT


def describe_unmet(entry: Entry, states: States, replica: int) -> str:
    """Return why a replica can never start, as a clause: its dependencies that are not met.

    A batch system may report the end of a job before that of the job which is its cause: then any dependency
    that is not met yet may be the cause.
    """
    steps = {it: dependency_step(it, states, replica) for it in entry.after}
    unmet = [it for it, step in steps.items() if step is Next.NEVER] or [
        it for it, step in steps.items() if step is not Next.START
    ]
    return render_unmet(unmet)


def render_unmet(unmet: Iterable[After]) -> str:
    """Return a clause about dependencies that are not met.

    >>> render_unmet([After("fit"), After("mend", "failed")])
    'fit has not completed and mend has not failed'
    """
    return " and ".join(f"{it.id} {_UNMET.get(it.when, 'has not ended')}" for it in unmet)


_UNMET = {"ok": "has not completed", "failed": "has not failed", "started": "has not started"}


def _started_step(dependency_states: Sequence[JobState]) -> Next:
    if not all(it is JobState.ACTIVE or it.final for it in dependency_states):
        return Next.WAIT
    has_started = {JobState.ACTIVE, JobState.COMPLETED} & set(dependency_states)
    return Next.START if has_started else Next.NEVER


def service_state(part: Part) -> JobState:
    """Return the state of a service for its dependants: it is active only once its probe succeeds."""
    if part.entry.ready is None or part.is_ready:
        return part.state
    without_probe = {JobState.COMPLETED: JobState.FAILED, JobState.ACTIVE: JobState.QUEUED}
    return without_probe.get(part.state, part.state)


def combined_state(states: Sequence[JobState]) -> JobState:
    """Return one state for all replicas of an entry: how it ended, or the furthest that any of them is."""
    if all(it.final for it in states):
        worst_first = (JobState.FAILED, JobState.CANCELED)
        return next((it for it in worst_first if it in states), JobState.COMPLETED)
    if any(it is JobState.ACTIVE or it.final for it in states):
        return JobState.ACTIVE
    return JobState.QUEUED if JobState.QUEUED in states else JobState.NEW
