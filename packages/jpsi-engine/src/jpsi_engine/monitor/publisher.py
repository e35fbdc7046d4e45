"""The jobs that one executor follows: judges them by what is known, and publishes what follows from it."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, Observation
from jpsi.plugin.engine import decode_status, encode_status
from jpsi_engine.monitor.outbox import Outbox
from jpsi_engine.runner import explained
from jpsi_engine.scheduler import Absence, Backend, Tracked, is_final
from jpsi_engine.spool import Spool
from jpsi_engine.verdict import Facts, Marker, Stop, begun, judge, settles

log = logging.getLogger(__name__)

# How many answers of the queue, each whole, must leave a job out before it is believed to be gone.
_ANSWERS = 2
# How long the queue must leave out a job that the accounting calls waiting or running.
_CONTRADICTED_SECONDS = 3600.0


class Judging:
    """Jobs, their judge, and where verdicts go. Methods may be called from any thread.

    Args:
        backend: which batch system it is.
        spool: where ends are written that markers do not tell.
        grace: seconds until a marker that was left is seen here for certain.
        patience: seconds until a batch system that does not mention a job is believed.
        publish: called with a job id and a status, one call at a time and under no lock.
    """

    def __init__(
        self,
        backend: Backend,
        spool: Spool,
        *,
        grace: float,
        patience: float,
        publish: Callable[[str, JobStatus], None],
    ) -> None:
        #: How many of the seconds between two times count, where jobs cannot be heard of all the time.
        self.passed: Callable[[float, float], float] = _all_of_it
        #: Whether the end of a job, and how it ended, is not to be told before somebody calls `end`.
        self.is_held: Callable[[Tracked, JobStatus], bool] = _is_never_held
        self._backend = backend
        self._spool = spool
        self._grace = grace
        self._patience = patience
        self._outbox = Outbox(publish)
        self._lock = threading.Lock()
        self._jobs: dict[str, Tracked] = {}
        self._knowing = threading.Lock()
        # What was judged last of a job of which only the queue tells: by what, when, and what follows.
        self._alike: tuple[Observation, float, JobStatus | None] | None = None

    def add(self, job: Tracked) -> None:
        """Know a job."""
        with self._lock:
            self._jobs[job.job_id] = job

    def add_found(self, job: Tracked) -> None:
        """Know a job, unless it is known already."""
        with self._lock:
            self._jobs.setdefault(job.job_id, job)

    def get(self, job_id: str) -> Tracked | None:
        """The job with this id, unless it is final or was never here."""
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[Tracked]:
        """Every job that is not final."""
        with self._lock:
            return list(self._jobs.values())

    def has_followed(self) -> bool:
        """Whether there is a job whose statuses are published; asked for each of many jobs."""
        with self._lock:
            return any(job.is_followed for job in self._jobs.values())

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """What is known of jobs changes, and is judged, within one of these; verdicts are published after it.

        One thread at a time has one, and not one within another.
        """
        try:
            with self._knowing:
                yield
        finally:
            self._outbox.empty()

    def read(self, job: Tracked, now: float) -> bool:
        """Know what is on disk about a job, and judge it; returns as `take` does.

        Raises:
            OSError: its folder cannot be read.
        """
        if not job.has_runner:
            return False
        content = self._spool.read_final(job.spool_id, job.attempt)
        if content is not None:
            self._end(job, decode_status(content))
            return False
        job.stop = self._stop_on_disk(job)
        markers = job.own_markers(
            self._spool.collect([job.spool_id], enter=lambda _: self.make_folder(job))[job.spool_id]
        )
        return bool(markers) and self.take(job, markers, now)

    def take(self, job: Tracked, markers: Iterable[Marker], now: float) -> bool:
        """Know what a job has left, and judge it; returns whether the batch system must tell how it ended."""
        is_end = job.take(markers, now)
        if is_end:
            # another process may have told it to end
            job.stop = job.stop or self._stop_on_disk(job)
        self.judge(job, now)
        return is_end and not self.settles(job)

    def settles(self, job: Tracked) -> bool:
        """Whether the markers of a job say all that there is to know about how it ended."""
        return settles(job.markers, self._backend.requeue_exit_codes, job.stop)

    def judge(self, job: Tracked, now: float) -> None:
        """Publish what follows from all that is known of a job."""
        status = self._status(job, now)
        job.is_unjudged = False
        if status is not None and status.final and self.is_held(job, status):
            status = begun(job.markers)
        if status is not None and status.final:
            self._end_as_told(job, status)
        elif status is not None:
            self._outbox.put(job.job_id, status)

    def end(self, job: Tracked, status: JobStatus) -> None:
        """Publish the end of a job that was held."""
        with self.session():
            self._end_as_told(job, status)

    def _end_as_told(self, job: Tracked, status: JobStatus) -> None:
        """Publish the end of a job: as it is told on disk already, or else like this."""
        content = self._spool.read_final(job.spool_id, job.attempt) if job.has_runner else None
        if content is None:
            known = explained(self._spool, job.spool_id, job.attempt, status)
        else:
            known = decode_status(content)
        self._end(job, known, self._write)

    def _status(self, job: Tracked, now: float) -> JobStatus | None:
        """What follows from all that is known of a job.

        Many of which the queue says the same, and nobody anything else, have one status.
        """
        if job.queued is None or not job.is_only_queued:
            return judge(self._facts(job, now))
        if self._alike is None or self._alike[0] is not job.queued or self._alike[1] != now:
            self._alike = job.queued, now, judge(self._facts(job, now))
        return self._alike[2]

    def _facts(self, job: Tracked, now: float) -> Facts:
        if is_final(job.queued) and job.ended_since is None:
            job.ended_since = now
        known, overdue = self.absence(job, now), self._overdue(job)
        absent_for, is_late = known.absent or 0.0, (known.unaccounted or 0.0) >= overdue
        return Facts(
            system=self._backend.name,
            now=datetime.now(UTC),
            has_runner=job.has_runner,
            markers=job.markers,
            requeue_exit_codes=self._backend.requeue_exit_codes,
            stop=job.stop,
            queued=job.queued,
            accounted=job.accounted,
            unmentioned=job.absent_since is not None,
            absent=known.answers >= _ANSWERS,
            denied=job.is_denied and known.answers >= _ANSWERS,
            stranger=job.stranger,
            unaccounted=_is_unaccounted(job, is_late, absent_for),
            settled=(known.over or 0.0) >= self._grace,
            overdue=absent_for >= overdue,
            dropped=(
                job.is_dropped
                and job.is_unaccounted
                and known.answers >= _ANSWERS
                and absent_for >= self._grace
            ),
            patience=overdue,
        )

    def absence(self, job: Tracked, now: float) -> Absence:
        """Return how long a job has been missing, by what this process and earlier ones have seen."""

        def whole(since: float | None, until: float, before: float | None) -> float | None:
            return None if since is None else self.passed(since, until) + (before or 0.0)

        earlier = job.earlier
        return Absence(
            answers=job.absences and job.absences + earlier.answers,
            absent=whole(job.absent_since, now, earlier.absent),
            # by its answers, of which the last may be old
            unaccounted=whole(job.unaccounted_since, job.accounting_asked, earlier.unaccounted),
            over=whole(job.ended_since, now, earlier.over),
        )

    def _overdue(self, job: Tracked) -> float:
        """Return for how many seconds a job must not have been mentioned."""
        overdue = max(self._grace, self._patience)
        # what was only attached to has no runner, whose marker may not show yet
        visible = self._backend.visible_within if job.is_unverified else None
        return overdue if visible is None else min(visible, overdue)

    def is_lost(self, job: Tracked, now: float) -> bool:
        """Return whether a job would be told to be lost, as the batch system has not mentioned it."""
        if self.absence(job, now).answers < _ANSWERS:
            return False
        status = judge(self._facts(job, now))
        return status is not None and status.final and status.evidence is Evidence.ABSENCE

    def _end(
        self, job: Tracked, status: JobStatus, write: Callable[[Tracked, JobStatus], None] | None = None
    ) -> None:
        with self._lock:
            if self._jobs.get(job.job_id) is not job:
                return
            del self._jobs[job.job_id]
        if write is not None:
            write(job, status)
        started = begun(job.markers)
        if started is not None:
            # of a job that was too quick to be seen before, the runner has told when it began
            self._outbox.put(job.job_id, started)
        self._outbox.put(job.job_id, status)

    def _write(self, job: Tracked, status: JobStatus) -> None:
        # Before a site's requeue codes are known, no failure tells it: so that is what is asked here always.
        is_told = status.evidence is Evidence.MARKER and settles(job.markers, range(1, 256))
        if not job.has_runner or (is_told and job.stop is None):
            return
        try:
            content = encode_status(status)
            json.dumps(content)
        except (TypeError, ValueError):
            # details of a plugin's that JSON does not know
            log.warning("job %s: its end is not on disk", job.job_id, exc_info=True)
            return

        def write() -> None:
            self.make_folder(job)
            self._spool.finish(job.spool_id, job.attempt, content)

        self._spool.unwritten.write(f"the end of job {job.job_id}", write)

    def remember_stop(self, job: Tracked, stop: Stop) -> None:
        """Write down that jpsi told a job to end, before it does."""
        if not job.has_runner:
            job.stop = job.stop or stop
            return
        try:
            self.make_folder(job)
            stop = attrs.evolve(stop, is_late=self._has_left_its_end(job))
            kept = self._spool.stop(job.spool_id, job.attempt, stop.content)
        except FileNotFoundError:
            # Its folder was removed: that is no reason to let it run on.
            job.stop = job.stop or stop
            return
        job.stop = Stop.of(kept)

    def _has_left_its_end(self, job: Tracked) -> bool:
        """Whether a job has left an exit marker, by all that shows now."""
        found = [*self._spool.news({job.spool_id}), *self._spool.consumed(job.spool_id)]
        return any(it.kind == "exit" and it.attempt == job.attempt for it in found)

    def make_folder(self, job: Tracked) -> None:
        """See to it that an element of an array has a folder, which it has not before it runs."""
        if job.place is not None:
            self._spool.adopt(job.spool_id, job.attempt, job.place)

    def _stop_on_disk(self, job: Tracked) -> Stop | None:
        content = self._spool.read_stop(job.spool_id, job.attempt)
        return None if content is None else Stop.of(content)


def _is_unaccounted(job: Tracked, is_late: bool, absent_for: float) -> bool:  # noqa: FBT001  one caller
    """Return whether the accounting tells no more of a job.

    A record that calls it waiting or running is a sign of life. The queue outweighs it after an hour: where
    the accounting was down when a job ended, it may call it running for ever.
    """
    if job.is_unaccounted:
        # one that is none of jpsi's can have left no marker that may still show
        return job.has_no_accounting or is_late or (job.is_denied and not job.has_runner)
    return job.accounted is not None and not job.accounted.final and absent_for >= _CONTRADICTED_SECONDS


def _is_never_held(job: Tracked, status: JobStatus) -> bool:
    del job, status
    return False


def _all_of_it(since: float, now: float) -> float:
    return now - since
