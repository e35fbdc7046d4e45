"""How many more jobs of the user a batch system may be given, by what it says that it has of them.

Jobs of other programs, and those that were submitted by hand, are in its answer. Between two answers the
submissions count that processes of this machine tell one another of, and the jobs that are followed here.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from jpsi.plugin import JobState, Observation
from jpsi_engine.host import Full
from jpsi_engine.scheduler.job_view import Tracked
from jpsi_engine.scheduler.shared_poll import Sharing
from jpsi_engine.scheduler.snapshot import Answer

T = TypeVar("T")

_GROWTH = 1.6
# In shortest intervals: when to look again if another process is looking.
_RETRY = 0.05
# How long a process that has not been heard of is believed to be submitting still.
_LEASE_SECONDS = 600.0
_NEVER = float("-inf")


@attrs.frozen(slots=True, kw_only=True)
class Limits:
    """What must not be exceeded; infinity is no limit."""

    #: How many jobs of the user, waiting or running, the batch system has.
    queued: float = math.inf
    #: How many of them run.
    active: float = math.inf
    #: How old an answer may be, in seconds, and how rarely it is asked at last while there is no room.
    shortest: float
    longest: float


@attrs.define(slots=True, eq=False)
class Grant:
    """What may be submitted now."""

    #: How many jobs.
    queued: float
    #: How many of them may run at a time.
    active: float
    _unique: str = attrs.field(factory=lambda: os.urandom(4).hex())
    #: When they were submitted, or not.
    ended: float = math.inf

    @property
    def word(self) -> str:
        """What other processes are told."""
        return f"{self._unique}/{self.queued:.0f}/{self.ended}"


class Room:
    """The room of one executor. Methods may be called from any thread, `look` by one at a time.

    Args:
        name: what the batch system is called.
        limits: the limits.
        ask: asks it for all jobs of the user that have not ended.
        system: says which batch system that is.
        own: the jobs that are followed here.
        sharing: what processes tell one another of.
        now: the clock that all processes of the machine share.
    """

    def __init__(  # noqa: PLR0913  what it connects
        self,
        name: str,
        limits: Limits,
        *,
        ask: Callable[[], Mapping[str, Observation]],
        system: Callable[[], str],
        own: Callable[[], Collection[Tracked]],
        sharing: Sharing,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._limits = limits
        self._ask = ask
        self._system = system
        self._own = own
        self._sharing = sharing
        self._now = now
        self._lock = threading.Lock()
        self._granted: list[Grant] = []
        # how many elements of an array may run at a time, where that is not all
        self._at_a_time: dict[str, int] = {}
        self._heard: Answer | None = None
        # while it is full: how long it is not asked again unless a job of this process has ended
        self._is_full = False
        self._pause = limits.shortest
        self._most_own = 0

    def look(self, wanted: int) -> Grant | Full:
        """Take room for up to so many jobs, if there is room for one.

        Raises:
            JpsiError: the batch system did not answer.
        """
        system = self._system()
        self._announce(system)
        with self._sharing.turn() as is_ours:
            if not is_ours:
                return Full(_RETRY * self._limits.shortest, "another process is submitting jobs")
            own = self._own()
            answer = self._answer(system, own)
            grant = self._grant(system, answer, own, wanted)
            if isinstance(grant, Grant):
                with self._lock:
                    self._granted.append(grant)
                self._announce(system)
            return grant

    def release(self, grant: Grant) -> None:
        """What was granted was submitted, or not."""
        grant.active, grant.ended = 0, self._now()
        self._announce(self._system())

    def limit(self, array: str, at_a_time: int) -> None:
        """Know that no more elements of an array run at a time."""
        with self._lock:
            self._at_a_time[array] = at_a_time

    # ---------------------------------------------------------------------------------- what is known

    def _answer(self, system: str, own: Collection[Tracked]) -> Answer:
        """What the batch system said last, or says now."""
        now = self._now()
        known = [it for it in (self._heard, self._sharing.last(system, now)) if it is not None]
        answer = max(known, key=lambda it: it.begun, default=None)
        if answer is None or now >= self._due(answer, own):
            seen = self._ask()
            answer = Answer(begun=now, ended=self._now(), asked=None, seen=seen)
            self._sharing.keep(system, answer)
            if self._is_full:
                self._pause = min(self._pause * _GROWTH, self._limits.longest)
        if answer is not self._heard:
            self._most_own = 0
        self._heard = answer
        self._most_own = max(self._most_own, len(own))
        return answer

    def _due(self, answer: Answer, own: Collection[Tracked]) -> float:
        """When an answer is too old."""
        has_ended = len(own) < self._most_own
        is_slow = self._is_full and not has_ended
        return answer.ended + (self._pause if is_slow else self._limits.shortest)

    def _grant(self, system: str, answer: Answer, own: Collection[Tracked], wanted: int) -> Grant | Full:
        names = {job.native_id for job in own}
        there = len(names | answer.seen.keys()) + self._on_the_way(system, answer)
        active = 0
        if self._limits.active != math.inf:
            others = [seen for native_id, seen in answer.seen.items() if native_id not in names]
            active = self._may_run(own) + sum(seen.state is JobState.ACTIVE for seen in others)
        queued_left, active_left = self._limits.queued - there, self._limits.active - active
        self._is_full = min(queued_left, active_left) < 1
        if not self._is_full:
            self._pause = self._limits.shortest
            return Grant(min(wanted, queued_left), min(wanted, active_left))
        left = max(0.0, self._due(answer, own) - self._now())
        if queued_left < 1:
            why = (
                f"{self._name} has {there} jobs of yours (max_queued is {self._limits.queued}), "
                f"{there - len(names)} of which are not of this program"
            )
        else:
            why = f"{active} jobs of yours run on {self._name}, or may (max_active is {self._limits.active})"
        return Full(min(left, self._limits.shortest), why)

    def _on_the_way(self, system: str, answer: Answer) -> int:
        """How many jobs are being submitted, or were by other processes since they were counted."""
        with self._lock:
            own = {it.word for it in self._granted}
            count = sum(int(it.queued) for it in self._granted if it.ended == math.inf)
        for word in self._sharing.wanted(system, self._now()) - own:
            with contextlib.suppress(ValueError):  # another version's
                _, queued, ended = word.split("/")
                count += int(queued) if float(ended) >= answer.begun else 0
        return count

    def _may_run(self, own: Iterable[Tracked]) -> int:
        """How many of the jobs that are followed here, or are being submitted, may run at a time."""
        with self._lock:
            elements = Counter(job.place.array if job.place is not None else None for job in own)
            self._at_a_time = {array: it for array, it in self._at_a_time.items() if array in elements}
            alone = elements.pop(None, 0)
            together = sum(min(it, self._at_a_time.get(str(array), it)) for array, it in elements.items())
            return alone + together + sum(int(it.active) for it in self._granted)

    def _announce(self, system: str) -> None:
        """Tell other processes what they cannot know from the batch system yet."""
        with self._lock:
            begun = _NEVER if self._heard is None else self._heard.begun
            self._granted = [it for it in self._granted if it.ended >= begun]
            words = frozenset(it.word for it in self._granted)
            self._sharing.want(system, words, self._now(), _LEASE_SECONDS)


def wave(
    parts: Sequence[Sequence[T]], grant: Grant, *, can_limit: bool
) -> tuple[list[tuple[Sequence[T], int | None]], list[Sequence[T]]]:
    """What of some parts, each of which is one submission, is submitted now, and what later.

    >>> wave(["abcd", "ef", "g"], Grant(5, 3), can_limit=True)
    ([('abcd', 3)], ['ef', 'g'])
    >>> wave(["abcd", "ef", "g"], Grant(5, 9), can_limit=True)
    ([('abcd', None), ('e', None)], ['f', 'g'])

    Args:
        parts: the jobs.
        grant: what is granted.
        can_limit: whether the batch system can be told how many elements of an array run at a time.

    Returns:
        Parts, each with how many of its jobs may run at a time, or None for all; and the others.
    """
    now, later = [], []
    queued, active = grant.queued, grant.active
    for part in parts:
        most = min(len(part), queued, active if not can_limit else math.inf)
        count = 0 if active < 1 else int(most)
        at_a_time = int(min(count, active))
        if count:
            now.append((part[:count], at_a_time if at_a_time < count else None))
        if count < len(part):
            later.append(part[count:])
        queued -= count
        active -= at_a_time
    return now, later
