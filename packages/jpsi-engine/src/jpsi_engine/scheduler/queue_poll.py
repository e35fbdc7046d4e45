"""Polls the batch system about all jobs together, or takes the snapshot of another process.

A process whose poll is due takes the lock, unless another process holds it, and reads the last snapshot. The
snapshot serves if its poll was begun after the reason to poll came up, and if it is about jobs that this
process follows. It says nothing about a job that was followed later, or that no process had queried:
neither that the job is there nor that it is not. The next snapshot will. If the snapshot does not serve, the
process polls, on behalf of all processes that share the snapshots, but not sooner than the shortest interval
after the last poll.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from jpsi.plugin import SubmitException
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.poll_interval import PollInterval
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot

# In shortest intervals: how often a thread that waits for a snapshot checks whether there is a new one.
_RETRY = 0.05


@attrs.define(slots=True, eq=False)
class QueuePoll:
    """The polls of one executor. Methods may be called from any thread."""

    _backend: Backend
    #: The files that this process shares with others that poll the same batch system.
    _shared_poll: SharedPoll
    #: The intervals; they learn of each poll, and put off a poll that another process makes.
    poll_interval: PollInterval
    #: False for the poll after a failed one: the batch system may choke on an id that another process wants.
    #: Only the thread that makes the due polls uses it.
    _includes_others: bool = attrs.field(default=True, init=False)

    def poll_when_due(self, jobs: Collection[JobView], now: Callable[[], float]) -> Snapshot | None:
        """Make the poll that is due, about these jobs; return the snapshot.

        None if another process is polling, or has polled just now; the poller has put the poll off then.

        Raises:
            JpsiError: the batch system was polled and did not answer.
        """
        poll_interval, native_ids = self.poll_interval, frozenset(job.native_id for job in jobs)
        system = self._announce(native_ids, now())
        with self._shared_poll.lock_polling() as is_ours:
            time = now()
            if not is_ours and poll_interval.is_busy(time):
                return None
            last = self._shared_poll.read_snapshot(system, time)
            if (
                last is not None
                and poll_interval.can_replace_poll(last.begun, last.ended, time)
                and covers_any(last, jobs)
            ):
                poll_interval.note_poll(last.begun, last.ended)
            elif last is not None and poll_interval.is_too_soon(time, last.ended):
                return None
            else:
                return self._poll_alternately(system, native_ids, now)
        self._backend.probe()
        return last

    def poll_now(
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
        poll_interval = self.poll_interval
        deadline = now() + poll_interval.shortest
        system = self._announce(native_ids, now())
        while True:
            with self._shared_poll.lock_polling() as is_ours:
                time = now()
                last = self._shared_poll.read_snapshot(system, time) if is_ours else None
                if last is not None and suffices(last):
                    poll_interval.note_poll(last.begun, last.ended)
                    return last
                if is_ours or time >= deadline:
                    return self._poll_with_fallback(system, native_ids, now)
            sleep(_RETRY * poll_interval.shortest)

    def _announce(self, native_ids: frozenset[str], now: float) -> str:
        """Announce the jobs to be polled about to other processes; return the batch system's digest."""
        system = self._backend.system_digest()
        self._shared_poll.announce(system, native_ids, now, self.poll_interval.lease)
        return system

    def _poll_with_fallback(
        self, system: str, native_ids: frozenset[str], now: Callable[[], float]
    ) -> Snapshot:
        """Poll; if that fails with the jobs of other processes, poll again without them."""
        wanted = self._with_others(system, native_ids, now())
        try:
            return self._poll(system, wanted, now)
        except SubmitException:
            if wanted == native_ids:
                raise
            return self._poll(system, native_ids, now)

    def _poll_alternately(
        self, system: str, native_ids: frozenset[str], now: Callable[[], float]
    ) -> Snapshot:
        """Poll; leave out the jobs of other processes if the last poll failed with them."""
        wanted = self._with_others(system, native_ids, now()) if self._includes_others else native_ids
        self._includes_others = wanted == native_ids
        snapshot = self._poll(system, wanted, now)
        self._includes_others = True
        return snapshot

    def _with_others(self, system: str, native_ids: frozenset[str], now: float) -> frozenset[str]:
        return native_ids | self._shared_poll.wanted_by_others(system, now)

    def _poll(self, system: str, native_ids: frozenset[str], now: Callable[[], float]) -> Snapshot:
        self._backend.probe()
        begun = now()
        try:
            seen = self._backend.query_states(sorted(native_ids))
        finally:
            ended = now()
            self.poll_interval.note_poll(begun, ended)
        queried = None if self._backend.capabilities.ids_per_query is None else native_ids
        snapshot = Snapshot(begun=begun, ended=ended, queried=queried, seen=seen)
        self._shared_poll.write_snapshot(system, snapshot)
        return snapshot


def covers_any(snapshot: Snapshot, jobs: Collection[JobView]) -> bool:
    """Return True if a snapshot covers any of these jobs; then other processes poll for this one."""
    return any(snapshot.covers(job.native_id, job.since) for job in jobs)
