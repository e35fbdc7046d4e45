"""Follows the jobs of one batch executor: takes in markers and answers, and publishes what follows from them.

Nothing here waits or knows a clock of its own: whoever calls says how late it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime

import attrs

from jpsi.contract.observation import Observation
from jpsi.engine.backend import Backend
from jpsi.engine.markers import Marker, parse
from jpsi.engine.poller import Poller
from jpsi.engine.spool import Spool
from jpsi.engine.tracker import Stop
from jpsi.engine.verdict import Facts, judge, settles
from jpsi.model.errors import JpsiError, PluginError
from jpsi.model.plain import decode_status, encode_status
from jpsi.model.states import Evidence, JobStatus

log = logging.getLogger(__name__)


@attrs.define(slots=True, eq=False)
class Tracked:
    """What is known of one job that is not final."""

    job_id: str
    #: The id in the spool; another than `job_id` for a job that was attached.
    spool_id: str
    #: 0 for a job that is none of jpsi's: nothing of it is in the spool.
    attempt: int
    native_id: str
    #: Whether its statuses are published; before, the job is not bound.
    is_followed: bool = False
    #: Whether what was on disk about it when it was followed first has been read.
    is_read: bool = False
    markers: list[Marker] = attrs.field(factory=list)
    stop: Stop | None = None
    queued: Observation | None = None
    accounted: Observation | None = None
    #: Whether the accounting, asked since the job left the queue, does not know it; or there is none.
    is_unaccounted: bool = False
    has_no_accounting: bool = False
    #: Since when the queue has not known it, or it is known to have ended, by the caller's clock.
    absent_since: float | None = None
    ended_since: float | None = None

    @property
    def has_runner(self) -> bool:
        """Whether it is a job of jpsi's, which leaves markers."""
        return self.attempt > 0


class Tracking:
    """The jobs that one executor follows. Methods may be called from any thread.

    Args:
        backend: who is asked.
        spool: where markers are.
        poller: decides when to ask.
        grace: seconds until a marker that was left is seen here for certain.
        patience: seconds until a batch system that does not mention a job is believed.
        publish: called with a job id and a status.
        corrected: tells the native id that a job turns out to have, or None.
    """

    def __init__(  # noqa: PLR0913  the parts that it connects
        self,
        backend: Backend,
        spool: Spool,
        poller: Poller,
        *,
        grace: float,
        patience: float,
        publish: Callable[[str, JobStatus], None],
        corrected: Callable[[Tracked], str | None],
    ) -> None:
        self._backend = backend
        self._spool = spool
        self._poller = poller
        self._grace = grace
        self._patience = patience
        self._publish = publish
        self._corrected = corrected
        self._lock = threading.Lock()
        self._jobs: dict[str, Tracked] = {}
        # What is known of a job changes, and is judged, by one thread at a time.
        self._judging = threading.RLock()
        self._strange_words: set[str] = set()

    def add(self, job: Tracked) -> None:
        """Know a job; nothing is published before `follow`."""
        with self._lock:
            self._jobs[job.job_id] = job

    def get(self, job_id: str) -> Tracked | None:
        """The job with this id, unless it is final or was never here."""
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[Tracked]:
        """Every job that is not final."""
        with self._lock:
            return list(self._jobs.values())

    def follow(self, job: Tracked, now: float) -> None:
        """Publish the statuses of a job from now on."""
        with self._judging:
            job.is_followed = True
            self._poller.wanted(now)
        self._begin(job, now)

    def _begin(self, job: Tracked, now: float) -> None:
        """Read what is on disk about a job already, now or in a later round."""
        try:
            with self._judging:
                self._read(job, now)
        except OSError:
            # nothing may keep a job from being followed that the batch system has
            log.warning("job %s: its folder cannot be read", job.job_id, exc_info=True)

    def _read(self, job: Tracked, now: float) -> None:
        if job.has_runner:
            content = self._spool.read_final(job.spool_id, job.attempt)
            if content is not None:
                self._finish(job, decode_status(content), is_on_disk=True)
                return
            job.stop = self._stop_of(job)
            markers = _of_attempt(job, self._spool.consumed(job.spool_id))
            job.is_read = True
            if markers:
                self._take(job, markers, now)
        job.is_read = True

    def wanted(self, now: float) -> None:
        """There is something new to ask about that markers may not tell."""
        self._poller.wanted(now, is_urgent=True)

    def next_question(self) -> float | None:
        """When the batch system is to be asked next; None while there is nothing to ask."""
        with self._lock:
            return self._poller.due() if any(job.is_followed for job in self._jobs.values()) else None

    def see_markers(self, now: float, appeared: Collection[str] = ()) -> None:
        """Take in what jobs have left, and publish it.

        Args:
            now: how late it is.
            appeared: the names of files that are known to have appeared; another process that follows the
                same jobs may have taken them to the jobs' folders already.

        Raises:
            OSError: the directory cannot be read; nothing is known then, and nothing lost.
        """
        followed: dict[str, list[Tracked]] = {}
        for job in self.all():
            if job.is_followed and job.has_runner:
                followed.setdefault(job.spool_id, []).append(job)
        if not followed:
            return
        for job in [job for jobs in followed.values() for job in jobs if not job.is_read]:
            self._begin(job, now)
        new = self._spool.collect(followed, only_new=True)
        announced = {marker.job_id for marker in map(_parsed, appeared) if marker is not None}
        for spool_id in announced & followed.keys() - new.keys():
            new[spool_id] = self._spool.consumed(spool_id)
        for spool_id, found in new.items():
            self._poller.marked(now)
            for job in followed[spool_id]:
                self._take_fenced(job, _of_attempt(job, found), now)

    def _take_fenced(self, job: Tracked, markers: list[Marker], now: float) -> None:
        try:
            with self._judging:
                self._take(job, markers, now)
        except Exception:
            # its markers are in its folder, and are read again when the queue says that it has ended
            log.exception("job %s: what it left could not be taken in", job.job_id)

    def _take(self, job: Tracked, markers: list[Marker], now: float) -> None:
        # Two threads, and other processes, may have seen more than this look at the folder.
        known = {marker.name: marker for marker in (*job.markers, *markers)}
        old, job.markers = job.markers, list(known.values())
        if _has_exit(job.markers) and (not _has_exit(old) or _last_run(job.markers) > _last_run(old)):
            # What the queue said before that is old: only a new answer tells how it saw the end.
            job.queued = job.accounted = None
            job.absent_since = None
            if not settles(job.markers, self._backend.requeue_exit_codes):
                self._poller.wanted(now, is_urgent=True)
                job.stop = job.stop or self._stop_of(job)
        self._judge(job, now)

    def ask(self, now: Callable[[], float]) -> None:
        """Ask the batch system about every job that is followed, and publish what that tells.

        A question that is not answered changes nothing.
        """
        jobs = [job for job in self.all() if job.is_followed]
        self._poller.asking()
        exited = {job.job_id for job in jobs if _has_exit(job.markers)}
        try:
            self._probe()
            states = self._backend.states(sorted({job.native_id for job in jobs}))
        except JpsiError as e:
            _tell(self._backend.name, e)
            return
        finally:
            self._poller.asked(now())
        time = now()
        with self._judging:
            for job in jobs:
                # An answer from before the exit marker came tells nothing of the end.
                if job.job_id in exited or not _has_exit(job.markers):
                    self._observe(job, states.get(job.native_id), time)
        self._ask_accounting(jobs, time)
        # Markers that came while the question was under way count, whatever the answer was.
        try:
            self.see_markers(time)
            with self._judging:
                for job in jobs:
                    if self.get(job.job_id) is job:
                        self._judge_without_haste(job, time)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)

    def _judge_without_haste(self, job: Tracked, now: float) -> None:
        has_ended = job.absent_since is not None or _is_final(job.queued)
        if job.has_runner and has_ended and not settles(job.markers, self._backend.requeue_exit_codes):
            # another process may have taken its last markers to the job's folder
            found = _of_attempt(job, self._spool.consumed(job.spool_id))
            if len(found) > len(job.markers):
                self._take(job, found, now)
                return
            if not _has_exit(job.markers) and self._is_another(job):
                return
        self._judge(job, now)

    def _is_another(self, job: Tracked) -> bool:
        """Whether the batch system has the job under another id, by which it is asked from now on."""
        try:
            native_id = self._corrected(job)
        except JpsiError as e:
            _tell(self._backend.name, e)
            return True
        if native_id is None or native_id == job.native_id:
            return False
        log.warning("job %s has the native id %s, not %s", job.job_id, native_id, job.native_id)
        job.native_id = native_id
        job.queued = job.accounted = job.absent_since = job.ended_since = None
        return True

    def _probe(self) -> None:
        """Find out what the site offers; without that, questions are asked all the same."""
        try:
            self._backend.probe()
        except JpsiError as e:
            _tell(f"{self._backend.name}, about what it offers,", e)

    def _observe(self, job: Tracked, seen: Observation | None, now: float) -> None:
        if seen is None:
            job.absent_since = now if job.absent_since is None else job.absent_since
            return
        job.queued, job.absent_since = seen, None
        job.accounted, job.is_unaccounted = None, False
        if not _is_final(seen):
            job.ended_since = None
        if seen.state is None and seen.word not in self._strange_words:
            self._strange_words.add(seen.word)
            log.warning(
                "%s calls the state of job %s %r, which this version does not know; the job keeps its state",
                self._backend.name,
                job.native_id,
                seen.word,
            )

    def _ask_accounting(self, jobs: Iterable[Tracked], now: float) -> None:
        left = [job for job in jobs if job.absent_since is not None and not _is_final(job.accounted)]
        if not left:
            return
        try:
            found = self._backend.finished(sorted({job.native_id for job in left}))
        except JpsiError as e:
            _tell(f"the accounting of {self._backend.name}", e)
            return
        with self._judging:
            for job in left:
                self._account(job, found, now)

    @staticmethod
    def _account(job: Tracked, found: dict[str, Observation] | None, now: float) -> None:
        if job.absent_since is not None:
            job.has_no_accounting = found is None
            job.accounted = None if found is None else found.get(job.native_id)
            # one that it calls running, long after the queue has forgotten it, is not known either
            job.is_unaccounted = not _is_final(job.accounted)
            if _is_final(job.accounted):
                job.ended_since = now if job.ended_since is None else job.ended_since

    def _judge(self, job: Tracked, now: float) -> None:
        status = judge(self._facts(job, now))
        if status is None:
            return
        if status.final:
            self._finish(job, status, is_on_disk=False)
        else:
            self._publish(job.job_id, status)

    def _facts(self, job: Tracked, now: float) -> Facts:
        queued = job.queued
        if _is_final(queued) and job.ended_since is None:
            job.ended_since = now
        absent_for = 0.0 if job.absent_since is None else now - job.absent_since
        ended_for = 0.0 if job.ended_since is None else now - job.ended_since
        overdue = absent_for >= max(self._grace, self._patience)
        return Facts(
            system=self._backend.name,
            now=datetime.now(UTC),
            has_runner=job.has_runner,
            markers=job.markers,
            requeue_exit_codes=self._backend.requeue_exit_codes,
            stop=job.stop,
            queued=queued,
            accounted=job.accounted,
            absent=job.absent_since is not None,
            unaccounted=job.is_unaccounted and (job.has_no_accounting or overdue),
            settled=ended_for >= self._grace,
            overdue=overdue,
        )

    def remember_stop(self, job: Tracked, stop: Stop) -> None:
        """Write down that jpsi told a job to end, before it does."""
        if not job.has_runner:
            job.stop = job.stop or stop
            return
        content = {"why": stop.why, "time": stop.time.isoformat()}
        kept = self._spool.stop(job.spool_id, job.attempt, content)
        job.stop = Stop(kept["why"], datetime.fromisoformat(kept["time"]))

    def _stop_of(self, job: Tracked) -> Stop | None:
        content = self._spool.read_stop(job.spool_id, job.attempt) if job.has_runner else None
        return None if content is None else Stop(content["why"], datetime.fromisoformat(content["time"]))

    def _finish(self, job: Tracked, status: JobStatus, *, is_on_disk: bool) -> None:
        with self._lock:
            if self._jobs.get(job.job_id) is not job:
                return
            del self._jobs[job.job_id]
        if job.has_runner and not is_on_disk and self._must_write(job, status):
            try:
                self._spool.finish(job.spool_id, job.attempt, encode_status(status))
            except OSError:
                log.warning("job %s: its end is not on disk", job.job_id, exc_info=True)
        self._publish(job.job_id, status)

    def _must_write(self, job: Tracked, status: JobStatus) -> bool:
        """Whether the markers in the job's folder do not tell this end by themselves."""
        # Before a site's requeue codes are known, no failure tells it: so that is what is asked here always.
        is_told = settles(job.markers, range(1, 256))
        return job.stop is not None or status.evidence is not Evidence.MARKER or not is_told


def _tell(whom: str, error: JpsiError) -> None:
    """A question was not answered: a batch system may be down for a while, a mistake in a plugin stays."""
    if isinstance(error, PluginError):
        log.warning("%s was not to be asked: %s", whom, error, exc_info=error)
    else:
        log.info("%s was not to be asked: %s", whom, error)


def _parsed(name: str) -> Marker | None:
    return parse(name, 0)


def _is_final(observation: Observation | None) -> bool:
    return observation is not None and observation.state is not None and observation.state.final


def _last_run(markers: Iterable[Marker]) -> int:
    return max((marker.restart for marker in markers), default=0)


def _has_exit(markers: Sequence[Marker]) -> bool:
    last = _last_run(markers)
    return any(marker.kind == "exit" and marker.restart == last for marker in markers)


def _of_attempt(job: Tracked, markers: Iterable[Marker]) -> list[Marker]:
    return [marker for marker in markers if marker.attempt == job.attempt]
