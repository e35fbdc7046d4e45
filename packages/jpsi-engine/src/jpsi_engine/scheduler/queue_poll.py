"""Polls the batch system about all jobs at once, or takes the snapshot of another process.

A process whose poll is due takes the lock, unless another process holds it, and reads the last snapshot. The
snapshot serves if its poll was begun after the reason to poll came up, and if it is about jobs that this
process follows. It says nothing about a job that was followed later, or that no process had asked for:
neither that the job is there nor that it is not. The next snapshot will. If the snapshot does not serve, the
process polls, on behalf of all processes that share the snapshots, but not sooner than the shortest interval
after the last poll.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from jpsi.plugin import JpsiError, PluginError, SubmitException
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.poll_interval import PollInterval
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot

log = logging.getLogger(__name__)

# The lease, in longest intervals: after that time without a word, a process's jobs are not polled any more.
_LEASE = 4
# In shortest intervals: how often a thread that waits for a snapshot checks whether there is a new one.
_RETRY = 0.05


class QueuePoll:
    """The polls of one executor. Methods may be called from any thread.

    Args:
        backend: the batch system.
        sharing: the files that this process shares with others that poll the same batch system.
        poller: the intervals; it learns of each poll, and puts off a poll that another process makes.
    """

    def __init__(self, backend: Backend, sharing: SharedPoll, poller: PollInterval) -> None:
        self._backend = backend
        self._sharing = sharing
        self._poller = poller
        # False for the poll after a failed one: the batch system may choke on an id that another process
        # wants. Only the thread that makes the due polls uses it.
        self._is_for_all = True

    def due(self, jobs: Collection[JobView], now: Callable[[], float]) -> Snapshot | None:
        """Make the poll that is due, about these jobs; return the snapshot.

        None if another process is polling, or has polled just now; the poller has put the poll off then.

        Raises:
            JpsiError: the batch system was polled and did not answer.
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
        suffices: Callable[[Snapshot], bool],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Snapshot:
        """Return a snapshot about these jobs: the last one of any process if it suffices, else a new one.

        Args:
            native_ids: the jobs.
            suffices: returns True if an earlier snapshot will do.
            now: the clock.
            sleep: waits for so many seconds; all waits together last about the shortest interval at most.

        Raises:
            JpsiError: the batch system was polled and did not answer.
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
        """Announce the jobs to be polled about to other processes; return the batch system's digest."""
        system = self._backend.system()
        self._sharing.want(system, native_ids, now, _LEASE * self._poller.longest)
        return system

    def _ask_twice(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Snapshot:
        """Poll; if that fails with the jobs of other processes, poll again without them."""
        wanted = self._wanted(system, native_ids, now())
        try:
            return self._ask(system, wanted, now)
        except SubmitException:
            if wanted == native_ids:
                raise
            return self._ask(system, native_ids, now)

    def _ask_alternately(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Snapshot:
        """Poll; leave out the jobs of other processes if the last poll failed with them."""
        wanted = self._wanted(system, native_ids, now()) if self._is_for_all else native_ids
        self._is_for_all = wanted == native_ids
        answer = self._ask(system, wanted, now)
        self._is_for_all = True
        return answer

    def _wanted(self, system: str, native_ids: frozenset[str], now: float) -> frozenset[str]:
        return native_ids | self._sharing.wanted(system, now)

    def _ask(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Snapshot:
        self._probe()
        begun = now()
        try:
            seen = self._backend.states(sorted(native_ids))
        finally:
            ended = now()
            self._poller.asked(begun, ended)
        asked = None if self._backend.lists_all else native_ids
        answer = Snapshot(begun=begun, ended=ended, asked=asked, seen=seen)
        self._sharing.keep(system, answer)
        return answer

    def find_out(self) -> None:
        """Find out what the site offers before the first poll, for example which failures are final."""
        self._probe()

    def _probe(self) -> None:
        """Find out what the site offers; if that fails, the poll takes place all the same."""
        try:
            self._backend.probe()
        except JpsiError as e:
            tell(f"{self._backend.place}, about what it offers,", e)


def tell(whom: str, error: JpsiError) -> None:
    """Log a failed query: an outage as information, an error in a plugin as a warning with its traceback."""
    if isinstance(error, PluginError):
        log.warning("%s was not to be asked: %s", whom, error, exc_info=error)
    else:
        log.info("%s was not to be asked: %s", whom, error)


def serves(answer: Snapshot, jobs: Collection[JobView]) -> bool:
    """Return True if a snapshot covers any of these jobs; then other processes poll for this one."""
    return any(answer.tells_of(job.native_id, job.since) for job in jobs)


def is_recent(answer: Snapshot, job: JobView, since: float, oldest: float) -> bool:
    """Return True if a snapshot shows a job's state after `since`, by a poll begun at `oldest` or later."""
    return answer.begun >= oldest and answer.tells_of(job.native_id, since)


def _ids(jobs: Collection[JobView]) -> frozenset[str]:
    return frozenset(job.native_id for job in jobs)
