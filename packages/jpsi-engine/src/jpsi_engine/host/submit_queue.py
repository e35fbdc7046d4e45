"""Where submissions stand in line until there is room for their jobs: first come, first served.

Whoever is first looks whether there is room, in its own thread, which can be interrupted. Nobody waits for
callbacks or for news of a job, so that a callback may submit jobs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import attrs

from jpsi.plugin import JpsiError, SubmitException

log = logging.getLogger(__name__)

T = TypeVar("T")

# When it is told why somebody waits at a level that is shown by default, and when again.
_LONG_SECONDS = 30.0
_AGAIN_SECONDS = 600.0
# When it is looked again after that failed.
_FAILED_SECONDS = 30.0


@attrs.frozen(slots=True)
class Full:
    """There is no room."""

    #: When to look again.
    seconds: float
    #: What takes the room, as a sentence.
    why: str


class GivenUpError(Exception):
    """Some of the jobs for which one waited are not to be submitted any more."""

    def __init__(self, job_ids: Collection[str]) -> None:
        super().__init__(job_ids)
        self.job_ids = frozenset(job_ids)


def not_admitted(job_id: str) -> SubmitException:
    """What is raised for a job that was given up while it waited."""
    return SubmitException(f"job {job_id} waited for room and was given up before there was any")


@attrs.define(slots=True, eq=False)
class _Place:
    """One submission in the line."""

    job_ids: frozenset[str]
    since: float
    given_up: set[str] = attrs.field(factory=set)
    #: Whether it was told that it waits.
    is_told: bool = False


class Entrance:
    """The line before one executor. Methods may be called from any thread.

    Args:
        now: the clock.
        wait: waits for a condition, for so many seconds at most.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Condition, float], object] = threading.Condition.wait,
    ) -> None:
        self._now = now
        self._wait = wait
        self._is_closed = False
        self._told_aloud = float("-inf")
        self._renew()
        _entrances.add(self)

    def _renew(self) -> None:
        """Nobody stands here: after a fork, those who do stay with the parent."""
        self._changed = threading.Condition()
        self._line: list[_Place] = []
        # how often there may have been more room
        self._news = 0

    def enter(self, job_ids: Collection[str], look: Callable[[], T | Full]) -> T:
        """Wait until there is room; returns what `look` does then.

        Args:
            job_ids: the jobs that are to be submitted.
            look: says whether there is room, and takes it. It is called by one at a time.

        Raises:
            GivenUpError: some of the jobs were given up; there may be room for the others.
            JpsiError: it cannot be found out whether there is room. Who waits already waits on.
        """
        with self._standing(job_ids) as place:
            while True:
                with self._changed:
                    self._come_first(place)
                    news = self._news
                result = self._looked(place, look)
                if not isinstance(result, Full):
                    return result
                self._tell(place, result)
                with self._changed:
                    self._check(place)
                    if self._is_closed:
                        raise GivenUpError(place.job_ids)
                    if self._news == news:
                        self._wait(self._changed, result.seconds)

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Let jobs wait no more; None is all, now and later. They enter only if there is room at once."""
        with self._changed:
            self._is_closed = self._is_closed or job_ids is None
            for place in self._line:
                place.given_up |= place.job_ids if job_ids is None else place.job_ids & set(job_ids)
            self._changed.notify_all()

    def look_again(self) -> None:
        """There may be room."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def _standing(self, job_ids: Collection[str]) -> Iterator[_Place]:
        place = _Place(frozenset(job_ids), self._now())
        with self._changed:
            self._line.append(place)
        try:
            yield place
        finally:
            with self._changed:
                self._line.remove(place)
                self._changed.notify_all()

    def _come_first(self, place: _Place) -> None:
        self._check(place)
        while self._line[0] is not place:
            self._changed.wait()
            self._check(place)

    @staticmethod
    def _check(place: _Place) -> None:
        if place.given_up:
            raise GivenUpError(place.given_up)

    @staticmethod
    def _looked(place: _Place, look: Callable[[], T | Full]) -> T | Full:
        try:
            return look()
        except JpsiError as e:
            if not place.is_told:
                raise
            return Full(_FAILED_SECONDS, str(e))

    def _tell(self, place: _Place, full: Full) -> None:
        now = self._now()
        if not place.is_told:
            place.is_told = True
            log.info("jobs wait to be submitted: %s", full.why)
        if now >= max(place.since + _LONG_SECONDS, self._told_aloud + _AGAIN_SECONDS):
            self._told_aloud = now
            log.warning("jobs have waited %.0f s to be submitted: %s", now - place.since, full.why)


_entrances: weakref.WeakSet[Entrance] = weakref.WeakSet()


def _after_fork() -> None:
    for entrance in _entrances:
        entrance._renew()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)
