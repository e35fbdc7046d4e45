"""Asks the batch system about all jobs at once, or takes what it has just told another process.

Whoever finds a question due takes the lock, unless somebody has it, and looks at the last answer. That one
serves if it was begun after what made the question due, and is about jobs that are followed here. Of a job
that was followed later, or that nobody had asked for yet, it tells nothing: neither that it is there nor that
it is not; the next one will. Where it does not serve, the question is asked, on behalf of all processes that
share, but not sooner than the shortest interval after the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from jpsi.plugin import JpsiError, PluginError, SubmitException
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import Tracked
from jpsi_engine.scheduler.poll_interval import Poller
from jpsi_engine.scheduler.shared_poll import Sharing
from jpsi_engine.scheduler.snapshot import Answer

log = logging.getLogger(__name__)

# A process that has not been heard of for so many of its longest intervals is not asked for any more.
_LEASE = 4
# In shortest intervals: when somebody who waits for an answer looks again whether another process has it.
_RETRY = 0.05


class Asking:
    """The questions of one executor. Methods may be called from any thread.

    Args:
        backend: who is asked.
        sharing: whom it is asked with.
        poller: is told of each answer, and puts off what others are asking.
    """

    def __init__(self, backend: Backend, sharing: Sharing, poller: Poller) -> None:
        self._backend = backend
        self._sharing = sharing
        self._poller = poller
        # Not for the question that follows a failed one: an id of another process may be what the batch
        # system chokes on. Of the questions that are due, which one thread asks.
        self._is_for_all = True

    def due(self, jobs: Collection[Tracked], now: Callable[[], float]) -> Answer | None:
        """The answer to a question that is due, which is about these jobs.

        None if another process is asking, or has only just asked; then the poller has put it off.

        Raises:
            JpsiError: the batch system was asked and did not answer.
        """
        poller, native_ids = self._poller, _ids(jobs)
        system = self._want(native_ids, now())
        with self._sharing.turn() as is_ours:
            time = now()
            if not is_ours and poller.is_busy(time):
                return None
            last = self._sharing.last(system, time)
            if last is not None and poller.is_news(last.begun, last.ended, time) and serves(last, jobs):
                poller.asked(last.begun, last.ended)
            elif last is not None and poller.is_too_soon(time, last.ended):
                return None
            else:
                return self._ask_alternately(system, native_ids, now)
        self._probe()
        return last

    def at_once(
        self,
        native_ids: frozenset[str],
        suffices: Callable[[Answer], bool],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Answer:
        """An answer about these jobs: the last one that anybody was given if it suffices, else a new one.

        Args:
            native_ids: the jobs.
            suffices: whether an answer that was given already will do.
            now: the clock.
            sleep: waits for so many seconds, but not longer in all than the shortest interval.

        Raises:
            JpsiError: the batch system was asked and did not answer.
        """
        poller = self._poller
        deadline = now() + poller.shortest
        system = self._want(native_ids, now())
        while True:
            with self._sharing.turn() as is_ours:
                time = now()
                last = self._sharing.last(system, time) if is_ours else None
                if last is not None and suffices(last):
                    poller.asked(last.begun, last.ended)
                    return last
                if is_ours or time >= deadline:
                    return self._ask_twice(system, native_ids, now)
            sleep(_RETRY * poller.shortest)

    def _want(self, native_ids: frozenset[str], now: float) -> str:
        """Say which jobs are to be asked about, and return which batch system that is."""
        system = self._backend.system()
        self._sharing.want(system, native_ids, now, _LEASE * self._poller.longest)
        return system

    def _ask_twice(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Answer:
        """Ask again without the jobs of others if that failed with them."""
        wanted = self._wanted(system, native_ids, now())
        try:
            return self._ask(system, wanted, now)
        except SubmitException:
            if wanted == native_ids:
                raise
            return self._ask(system, native_ids, now)

    def _ask_alternately(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Answer:
        """Ask without the jobs of others if that failed with them the last time."""
        wanted = self._wanted(system, native_ids, now()) if self._is_for_all else native_ids
        self._is_for_all = wanted == native_ids
        answer = self._ask(system, wanted, now)
        self._is_for_all = True
        return answer

    def _wanted(self, system: str, native_ids: frozenset[str], now: float) -> frozenset[str]:
        return native_ids | self._sharing.wanted(system, now)

    def _ask(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Answer:
        self._probe()
        begun = now()
        try:
            seen = self._backend.states(sorted(native_ids))
        finally:
            ended = now()
            self._poller.asked(begun, ended)
        asked = None if self._backend.lists_all else native_ids
        answer = Answer(begun=begun, ended=ended, asked=asked, seen=seen)
        self._sharing.keep(system, answer)
        return answer

    def find_out(self) -> None:
        """Find out what the site offers, before the first question: which failures are final, for one."""
        self._probe()

    def _probe(self) -> None:
        """Find out what the site offers; without that, questions are asked all the same."""
        try:
            self._backend.probe()
        except JpsiError as e:
            tell(f"{self._backend.place}, about what it offers,", e)


def tell(whom: str, error: JpsiError) -> None:
    """Log a question that was not answered: a batch system may be down for a while, a mistake stays."""
    if isinstance(error, PluginError):
        log.warning("%s was not to be asked: %s", whom, error, exc_info=error)
    else:
        log.info("%s was not to be asked: %s", whom, error)


def serves(answer: Answer, jobs: Collection[Tracked]) -> bool:
    """Whether an answer tells of any of these jobs: others ask for this process, then."""
    return any(answer.tells_of(job.native_id, job.since) for job in jobs)


def is_recent(answer: Answer, job: Tracked, since: float, oldest: float) -> bool:
    """Whether an answer tells what became of a job since then, and was not asked for longer ago than that."""
    return answer.begun >= oldest and answer.tells_of(job.native_id, since)


def _ids(jobs: Collection[Tracked]) -> frozenset[str]:
    return frozenset(job.native_id for job in jobs)
