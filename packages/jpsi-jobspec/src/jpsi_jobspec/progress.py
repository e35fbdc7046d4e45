"""What is to be done next, from a plan and how far each entry has come. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi import JobState

from .model import When
from .planned import After, Entry

#: Of each entry, the state of each replica; NEW is what was not submitted.
States = Mapping[str, Sequence[JobState]]


class Next(enum.Enum):
    """What is to be done with an entry."""

    #: Nothing it waits for is left.
    START = "start"
    #: All that it waits for was submitted, and has not ended otherwise than it should.
    HAND_OVER = "hand over"
    WAIT = "wait"
    #: What it waits for has ended otherwise than it should.
    NEVER = "never"


def next_of(entry: Entry, states: States, replica: int | None = None) -> Next:
    """What is to be done with an entry, or with one of its replicas.

    Where `replica` is given, dependencies that are replica by replica look at that one alone.
    """
    found = [met(it, states, replica) for it in entry.after]
    if Next.NEVER in found:
        return Next.NEVER
    if entry.when is When.ON_FAILURE and Next.WAIT not in found and Next.HAND_OVER not in found:
        ended = [state for it in entry.after for state in states[it.id]]
        return Next.START if any(it is not JobState.COMPLETED for it in ended) else Next.NEVER
    if Next.WAIT in found:
        return Next.WAIT
    if Next.HAND_OVER in found:
        return Next.WAIT if entry.when is When.ON_FAILURE else Next.HAND_OVER
    return Next.START


def met(after: After, states: States, replica: int | None = None) -> Next:
    """What one dependency lets be done with an entry, or with one of its replicas."""
    of = states[after.id]
    if after.each and replica is not None and replica <= len(of):
        of = [of[replica - 1]]
    if after.when == "started":
        return _started(of)
    has_failed = any(it.final and it is not JobState.COMPLETED for it in of)
    if has_failed and after.when != "any":
        return Next.START if after.when == "failed" else Next.NEVER
    if all(it.final for it in of):
        return Next.NEVER if after.when == "failed" else Next.START
    # a batch system can be told to wait for all of them, not for the first one that fails
    can_hand_over = JobState.NEW not in of and (after.when != "failed" or len(of) == 1)
    return Next.HAND_OVER if can_hand_over else Next.WAIT


def _started(of: Sequence[JobState]) -> Next:
    if all(it is JobState.ACTIVE or it.final for it in of):
        return Next.START if any(it in {JobState.ACTIVE, JobState.COMPLETED} for it in of) else Next.NEVER
    return Next.WAIT


def as_started(entry: Entry, state: JobState, *, is_ready: bool) -> JobState:
    """The state of a service as those see it that wait for its start: it has begun once it can be used."""
    if entry.ready is None or is_ready:
        return state
    if state is JobState.COMPLETED:
        return JobState.FAILED
    return JobState.QUEUED if state is JobState.ACTIVE else state


@attrs.frozen(slots=True)
class Dependants:
    """Which entries wait for an entry."""

    _ids: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Dependants:
        """Those of a plan."""
        found: dict[str, list[str]] = {}
        for entry in entries:
            for after in entry.after:
                found.setdefault(after.id, []).append(entry.id)
        return cls(found)

    def __getitem__(self, entry_id: str) -> Sequence[str]:
        return self._ids.get(entry_id, ())


def joined(states: Sequence[JobState]) -> JobState:
    """One state for all replicas of an entry: how it ended, or the furthest that any of them has come."""
    if all(it.final for it in states):
        for state in (JobState.FAILED, JobState.CANCELED):
            if state in states:
                return state
        return JobState.COMPLETED
    if any(it is JobState.ACTIVE or it.final for it in states):
        return JobState.ACTIVE
    return JobState.QUEUED if JobState.QUEUED in states else JobState.NEW
