"""Follows the jobs of one batch executor: reads markers and snapshots of the queue, and publishes statuses.

The module has no clock of its own: the caller passes the time.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from jpsi.plugin import JobState, JpsiError, Observation
from jpsi_engine.monitor.publisher import Publisher
from jpsi_engine.scheduler import (
    Absences,
    Backend,
    JobView,
    Mentions,
    NativeIds,
    Outage,
    PollInterval,
    QueuePoll,
    Snapshot,
    compared,
    is_final,
    is_recent,
    name_of,
    tell,
)
from jpsi_engine.spool import Spool, keep_codes
from jpsi_engine.verdict import Marker, Stop, is_own, parse

log = logging.getLogger(__name__)

# For so many seconds after a submission a job may start, or end, at any moment.
_FRESH_SECONDS = 10.0
# The most accounting queries in one poll. Each may take a while, and the other jobs wait for them.
_QUESTIONS = 20
# In longest intervals: two polls that are further apart say nothing about the time between them.
_LAPSE = 4
# The most missing jobs of which one poll stores the absence for later processes; each takes a file.
_MOST_KEPT = 1000


class JobMonitor:
    """The jobs that one executor follows. Methods may be called from any thread.

    Args:
        backend: the batch system; it answers about jobs that have left the queue.
        spool: where the markers are.
        poller: decides when the next poll is due.
        asking: polls the queue.
        judging: derives statuses and publishes them.
        native_ids: finds the native id under which the batch system has a job, where the known one is wrong.
        renamed: called with a job id and its corrected native id; no lock is held then.
        missing: what other processes have stored about missing jobs; None if each process starts from zero.
    """

    def __init__(  # noqa: PLR0913  the parts that it connects
        self,
        backend: Backend,
        spool: Spool,
        *,
        poller: PollInterval,
        asking: QueuePoll,
        judging: Publisher,
        native_ids: NativeIds,
        renamed: Callable[[str, str], None],
        missing: Absences | None = None,
    ) -> None:
        self._backend = backend
        self._spool = spool
        self._poller = poller
        self._asking = asking
        self._judging = judging
        self._native_ids = native_ids
        self._renamed = renamed
        self._missing = missing
        self._heard: Snapshot | None = None
        self._strange_words: set[str] = set()
        self._silence = Outage(_LAPSE * poller.longest)

    def add(self, job: JobView) -> None:
        """Register a job; nothing is published before `follow`."""
        self._judging.add(job)

    def add_found(self, job: JobView) -> None:
        """Register a job as `add` does, unless it is registered already."""
        self._judging.add_found(job)

    def get(self, job_id: str) -> JobView | None:
        """Return the job with this id; None if it is final or was never registered."""
        return self._judging.get(job_id)

    def all(self) -> list[JobView]:
        """Return every job that is not final."""
        return self._judging.all()

    def known_as(self, native_id: str, now: float) -> JobView | None:
        """Return a job that is not final and has this native id; its markers up to now are taken in first.

        Raises:
            OSError: the directory of markers cannot be read.
        """
        # if two jobs have the id, the batch system has lost the older one
        job = next((job for job in reversed(self.all()) if job.native_id == native_id), None)
        if job is not None and job.is_followed and self._spool.has_new_markers(job.spool_id):
            self.see_markers(now)
        return job

    def remember_stop(self, job: JobView, stop: Stop) -> None:
        """Store in the spool that jpsi is about to end a job, before the batch system is asked to end it."""
        self._judging.remember_stop(job, stop)

    def follow(self, job: JobView, now: float) -> None:
        """Publish the statuses of a job from now on."""
        if job.is_read:
            self.follow_all([job], now)
            return
        with self._judging.session():
            job.is_followed, job.since = True, now
        self._poller.wanted(now)
        self._begin(job, now)

    def follow_all(self, jobs: Collection[JobView], now: float) -> None:
        """Follow many jobs as `follow` does, with one scan of the markers for all of them."""
        with self._judging.session():
            for job in jobs:
                job.is_followed, job.since = True, now
        self._poller.wanted(now)
        try:
            # one scan of the markers for all jobs; after it the folder of each that has a runner is read
            self._see(jobs, now)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)

    def changed(self, job: JobView, now: float) -> None:
        """Note that jpsi had the batch system change a job, so that a poll is due soon.

        The batch system reports such a change; the job's markers may not.
        """
        job.changed = now
        self._poller.wanted(now, is_urgent=True)

    def next_question(self) -> float | None:
        """Return when the next poll of the batch system is due; None while no job is followed."""
        return self._poller.due() if self._judging.has_followed() else None

    def expects_markers(self, now: float) -> bool:
        """Return True if a marker may appear at any moment: a job runs, or was submitted just now."""
        return any(
            job.has_runner and (job.is_running or now - job.since < _FRESH_SECONDS)
            for job in self._followed()
        )

    def _followed(self) -> list[JobView]:
        return [job for job in self.all() if job.is_followed]

    # ---------------------------------------------------------------------------------------- markers

    def _begin(self, job: JobView, now: float) -> None:
        """Read what the spool holds about a job; if its folder cannot be read, a later scan retries."""
        try:
            with self._judging.session():
                if self._judging.read(job, now):
                    self._poller.wanted(now, is_urgent=True)
                job.is_read = True
        except OSError:
            # a job that the batch system has must be followed whatever its folder looks like
            log.warning("job %s: its folder cannot be read", job.job_id, exc_info=True)
        except (KeyError, TypeError, ValueError):
            # a newer jpsi may have written what is there
            job.is_read = True
            log.warning("job %s: its folder cannot be understood", job.job_id, exc_info=True)

    def told(self, now: float) -> None:
        """Note that the batch system announced a change by itself; markers may report the same change."""
        self._poller.wanted(now)

    def see_markers(self, now: float, appeared: Collection[str] = ()) -> None:
        """Take in the markers that jobs have left, and publish what follows.

        Args:
            now: the current time.
            appeared: the names of marker files that the caller knows to have appeared. Another process that
                follows the same jobs may have moved them to the jobs' folders already.

        Raises:
            OSError: the directory cannot be read. Nothing was taken in, and nothing is lost.
        """
        self._see(self._followed(), now, appeared)

    def _see(self, jobs: Iterable[JobView], now: float, appeared: Collection[str] = ()) -> None:
        """Take in the markers of these jobs; see `see_markers`."""
        followed = [job for job in jobs if job.has_runner]
        if not followed:
            return
        spool_ids = {job.spool_id for job in followed}

        # usually none of many jobs has left anything, so this is built only when it is needed
        @functools.cache
        def by_spool_id() -> Mapping[str, Sequence[JobView]]:
            found: dict[str, list[JobView]] = {}
            for job in followed:
                found.setdefault(job.spool_id, []).append(job)
            return found

        def enter(spool_id: str) -> None:
            for job in by_spool_id()[spool_id]:
                self._judging.make_folder(job)

        new = self._spool.collect(spool_ids, only_new=True, enter=enter)
        for job in [job for job in followed if not job.is_read]:
            self._begin(job, now)
        announced = {marker.job_id for marker in map(_parsed, appeared) if marker is not None}
        for spool_id in announced & spool_ids - new.keys():
            new[spool_id] = self._spool.consumed(spool_id)
        for spool_id, found in new.items():
            self._poller.marked(now)
            for job in by_spool_id()[spool_id]:
                self._take_fenced(job, job.own_markers(found), now)

    def _take_fenced(self, job: JobView, markers: list[Marker], now: float) -> None:
        try:
            with self._judging.session():
                if self._judging.take(job, markers, now):
                    self._poller.wanted(now, is_urgent=True)
        except Exception:
            # its markers stay in its folder, and are read again when the queue says that the job has ended
            log.exception("job %s: what it left could not be taken in", job.job_id)

    # ---------------------------------------------------------------------------------------- answers

    def find_out(self, now: Callable[[], float]) -> None:
        """Probe what the site offers, then judge the jobs that have left an exit marker already."""
        self._asking.find_out()
        keep_codes(self._spool.root, self._backend.requeue_exit_codes)
        self._judge_ended(self._followed(), now())

    def _judge_ended(self, jobs: Iterable[JobView], now: float) -> None:
        with self._judging.session():
            for job in [job for job in jobs if job.has_exit and self.get(job.job_id) is job]:
                self._judging.judge(job, now)

    def ask(self, now: Callable[[], float]) -> None:
        """Poll the batch system about every followed job, and publish what follows from the snapshot.

        If the batch system does not answer, the jobs keep their states. The same holds if another process is
        polling at the moment; then the poll is soon due again. The log has one warning when an outage has
        lasted for a while, and one when the batch system answers again.
        """
        jobs, begun = self._followed(), now()
        try:
            answer = self._asking.due(jobs, now)
        except JpsiError as e:
            tell(self._backend.place, e)
            silent_for = self._silence.unanswered(begun, now())
            if silent_for is not None:
                log.warning("%s has not answered for %.0f s: %s", self._backend.place, silent_for, e)
            # The probe may have succeeded all the same: then the final exit codes are known.
            self._judge_ended(jobs, now())
            return
        if answer is not None:
            if self._silence.answered():
                log.warning("%s answers again", self._backend.place)
            self._hear(answer, jobs, now())

    def asked(self, seconds: float) -> None:
        """Note for how many seconds the last call of `ask` kept this program busy."""
        self._poller.cost(seconds)

    def info(
        self, job: JobView, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> Observation | None:
        """Return what the batch system said about a job; None if it did not mention the job.

        A snapshot that is younger than the shortest interval is used. If there is none, the batch system is
        polled about every followed job, and what follows from the new snapshot is published.

        Raises:
            JpsiError: the batch system was polled and did not answer.
        """
        # about a job that is not followed yet, no old snapshot counts
        since = max(min(job.since, now()), job.changed)

        def suffices(answer: Snapshot) -> bool:
            return is_recent(answer, job, since, now() - self._poller.shortest)

        answer = self._recent({job.native_id}, suffices, now, sleep)
        return job.own(self._said(answer, {job.native_id}).of(job.native_id))

    def present(self, jobs: Iterable[JobView]) -> dict[str, Observation]:
        """Return what the batch system says at this moment about the native ids of jobs, by job id.

        The batch system may have given a native id to a stranger's job since: see `JobView.owner_of`.

        Raises:
            JpsiError: the batch system did not answer.
        """
        native_ids = {job.job_id: job.native_id for job in jobs}
        asked = sorted(set(native_ids.values()))
        seen = self._backend.states(asked) if asked else {}
        said = self._said(Snapshot(begun=0.0, ended=0.0, asked=None, seen=seen), asked)
        told = {job_id: said.of(native_id) for job_id, native_id in native_ids.items()}
        return {job_id: it for job_id, it in told.items() if it is not None}

    def standing(
        self, tags: Mapping[str, str | None], now: Callable[[], float], sleep: Callable[[float], None]
    ) -> dict[str, JobState | None]:
        """Return the states of jobs by native id, whichever process follows them.

        Jobs that the batch system does not know are left out, and so are native ids that belong to a
        stranger's job now. A job may be reported as present by a snapshot, or by the success of its submit
        command, up to the shortest interval ago. A job is reported as missing only by a snapshot that was
        begun during this call.

        Args:
            tags: the native ids, each with the tag that the job carries; None for a job that jpsi did not
                submit.
            now: the clock.
            sleep: waits for so many seconds.

        Raises:
            JpsiError: the batch system was polled and did not answer.
        """
        native_ids = tags.keys()
        time, jobs = now(), {job.native_id: job for job in self.all()}
        oldest = time - self._poller.shortest
        known: dict[str, JobState | None] = {
            native_id: JobState.QUEUED
            for native_id in native_ids
            if native_id in jobs and jobs[native_id].accepted >= max(oldest, jobs[native_id].changed)
        }
        changed = {it: jobs[it].changed if it in jobs else oldest for it in native_ids if it not in known}
        if not changed:
            return known

        def suffices(answer: Snapshot) -> bool:
            said = self._said(answer, changed)
            return answer.begun >= oldest and all(
                answer.tells_of(native_id, since if is_own(said.of(native_id), tags[native_id]) else time)
                for native_id, since in changed.items()
            )

        said = self._said(self._recent(changed.keys(), suffices, now, sleep), changed)
        seen = {native_id: said.of(native_id) for native_id in changed}
        return known | {
            native_id: it.state
            for native_id, it in seen.items()
            if it is not None and is_own(it, tags[native_id])
        }

    def _recent(
        self,
        native_ids: Collection[str],
        suffices: Callable[[Snapshot], bool],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Snapshot:
        """Return the last snapshot if it suffices; otherwise poll and return the new snapshot."""
        answer = self._heard
        if answer is None or not suffices(answer):
            jobs = self._followed()
            asked = frozenset(native_ids) | {job.native_id for job in jobs}
            answer = self._asking.at_once(asked, suffices, now, sleep)
            self._hear(answer, jobs, now())
        return answer

    def _hear(self, answer: Snapshot, jobs: Sequence[JobView], now: float) -> None:
        """Take in a snapshot, unless another thread has taken in a newer one."""
        if self._heard is not None:
            answer = compared(answer, self._heard)
        followed = jobs
        # of most jobs nothing is new
        jobs = [job for job in jobs if not job.is_as_before(answer.seen.get(job.native_id))]
        said = self._said(answer, [job.native_id for job in jobs])
        with self._judging.session():
            if self._heard is not None and answer.begun < self._heard.begun:
                return
            self._heard = answer
            told = [
                (job, self._said_of(job, said)) for job in jobs if answer.tells_of(job.native_id, job.since)
            ]
            missed = [job for job, seen in told if seen is None and job.place is not None]
            there = self._arrays_there(said) if missed else frozenset()
            for job, seen in told:
                is_element = job.place is not None
                job.is_dropped = seen is None and is_element and said.arrays.get(job.native_id) in there
                self._observe(job, seen, now)
            self._recall_missing([job for job, _ in told], answer)
        # Markers that came during the poll count, whatever the snapshot says; and a job whose markers tell
        # how it ended needs no accounting query.
        try:
            self.see_markers(now)
            if self._ask_accounting(jobs, now):
                self.see_markers(now)
            doubtful = self._judge_all(jobs, now)
            if doubtful:
                # without the lock: other jobs may change while the batch system looks for these
                right = self._right_ids(doubtful)
                # that may have brought markers from the folders on the remote host
                self.see_markers(now)
                self._judge_all(self._confirmed(right, now), now, is_right=True)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)
        self._keep_missing(followed, answer, now)

    def _recall_missing(self, jobs: Iterable[JobView], answer: Snapshot) -> None:
        """Load what earlier processes know of jobs that are missing in the first snapshot of this process."""
        new = [job for job in jobs if not job.is_heard_of]
        for job in new:
            job.is_heard_of = True
        left = [job for job in new if job.has_left]
        if self._missing is not None and left:
            system = self._backend.system()
            for job in left:
                job.earlier = self._missing.recall(job, system, answer.begun) or job.earlier

    def _keep_missing(self, jobs: Iterable[JobView], answer: Snapshot, now: float) -> None:
        """Store for later processes how long each missing job has been missing; forget jobs that are back."""
        if self._missing is None:
            return
        with self._judging.session():
            left = {
                job: self._judging.absence(job, now)
                for job in jobs
                if job.has_left
                and job.has_runner
                and answer.tells_of(job.native_id, job.since)
                and self.get(job.job_id) is job
            }
        names = self._missing.names()
        if names:
            found = (job for job in jobs if name_of(job) in names and job not in left)
            self._missing.forget(job for job in found if answer.tells_of(job.native_id, job.since))
        if left:
            self._missing.forget_old(names - set(map(name_of, left)), now)
            system = self._backend.system()
            for job in sorted(left, key=lambda it: left[it].absent or 0.0, reverse=True)[:_MOST_KEPT]:
                self._missing.keep(job, system, left[job], now)

    def _arrays_there(self, said: Mentions) -> frozenset[str]:
        """Return the native ids of the arrays whose elements a snapshot mentions, followed here or not."""
        seen = said.answer.seen
        others = [native_id for native_id in seen if native_id not in said.arrays]
        known = (array for native_id, array in said.arrays.items() if native_id in seen)
        return frozenset(known).union(self._backend.arrays_of(others).values())

    def _said(self, answer: Snapshot, native_ids: Collection[str]) -> Mentions:
        return Mentions(answer, self._backend.arrays_of(list(native_ids)))

    def _said_of(self, job: JobView, said: Mentions) -> Observation | None:
        seen = said.of(job.native_id)
        if seen is not None or job.place is None:
            return seen
        ended = said.of_one_that_never_began(job.native_id)
        has_begun = ended is not None and (
            bool(job.markers) or self._spool.has_begun(job.spool_id, job.attempt)
        )
        return None if has_begun else ended

    def _confirmed(self, jobs: Sequence[JobView], now: float) -> list[JobView]:
        """Return the jobs that may be judged now; each that would be judged lost is polled once more, alone.

        To a query about one job alone, a batch system answers with the state or says that there is no such
        job. The answer to a query about many jobs may leave out a job by mistake.
        """
        sure, left = [], _QUESTIONS
        for job in jobs:
            if job.is_denied or job.stranger is not None or not self._judging.is_lost(job, now):
                sure.append(job)
            elif left > 0:
                left -= 1
                if self._ask_alone(job, now):
                    sure.append(job)
                else:
                    left = 0
        if len(sure) < len(jobs):
            self._poller.wanted(now, is_urgent=True)
        return sure

    def _ask_alone(self, job: JobView, now: float) -> bool:
        """Poll about one job; return False if the batch system did not answer."""
        try:
            seen = self.present([job]).get(job.job_id)
        except JpsiError as e:
            tell(self._backend.place, e)
            return False
        with self._judging.session():
            self._observe(job, seen, now)
            job.is_denied = job.absent_since is not None
        return True

    def _observe(self, job: JobView, seen: Observation | None, now: float) -> None:
        is_new = job.stranger is None
        job.observe(seen, now)
        if is_new and job.stranger is not None:
            log.warning(
                "job %s: %s has given its native id %s to another job",
                job.job_id,
                self._backend.place,
                job.native_id,
            )
        if seen is None or not seen.exists:
            if job.is_unverified and self._backend.visible_within is not None:
                # a poll soon shows whether such a job exists
                self._poller.wanted(now)
            return
        if seen.state is None and seen.word not in self._strange_words:
            self._strange_words.add(seen.word)
            log.warning(
                "%s calls the state of job %s %r, which this version does not know; the job keeps its state",
                self._backend.place,
                job.native_id,
                seen.word,
            )

    def _ask_accounting(self, jobs: Iterable[JobView], now: float) -> bool:
        """Ask the accounting how jobs ended that have left the queue; the longest unasked job comes first.

        Returns True if there were such jobs.
        """
        gone = [job for job in jobs if job.absent_since is not None and not is_final(job.accounted)]
        left: dict[str, list[JobView]] = {}
        for job in sorted(gone, key=lambda job: (job.accounting_asked, job.native_id)):
            if self.get(job.job_id) is job:
                left.setdefault(job.native_id, []).append(job)
        for native_ids in itertools.islice(self._backend.questions(list(left)), _QUESTIONS):
            if not self._account(
                [job for native_id in native_ids for job in left[native_id]], native_ids, now
            ):
                break
        return bool(left)

    def _account(self, jobs: Iterable[JobView], native_ids: Sequence[str], now: float) -> bool:
        """Send one query to the accounting; return False if it did not answer.

        A failed query says nothing about other jobs than its own.
        """
        try:
            found = self._backend.finished(native_ids)
        except JpsiError as e:
            tell(f"the accounting of {self._backend.place}", e)
            for job in jobs:
                job.account_later(now)
            return False
        with self._judging.session():
            for job in jobs:
                job.account(found, now)
        return True

    def _judge_all(self, jobs: Iterable[JobView], now: float, *, is_right: bool = False) -> list[JobView]:
        """Judge jobs; return those that the batch system may have under another id, unless `is_right`."""
        # Most jobs wait, and nothing is new about them; only for jobs that have left does time alone matter.
        open_ = [job for job in jobs if job.is_unjudged or job.has_left or job.markers]
        doubtful = []
        with self._judging.session():
            for job in [job for job in open_ if self.get(job.job_id) is job]:
                try:
                    if is_right or not self._is_doubtful(job, now):
                        self._judging.judge(job, now)
                    else:
                        doubtful.append(job)
                except Exception:
                    # this job is judged again after the next poll; the other jobs are judged now all the same
                    log.exception("job %s could not be judged", job.job_id)
        return doubtful

    def _is_doubtful(self, job: JobView, now: float) -> bool:
        """Return True if the batch system may still have a job that seems gone, under this id or another."""
        if not job.has_left or self._judging.settles(job):
            return False
        if not job.has_runner:
            return self._judging.is_lost(job, now)
        # another process may have moved its last markers to the job's folder
        found = job.own_markers(self._spool.consumed(job.spool_id))
        if len(found) > len(job.markers) and self._judging.take(job, found, now):
            self._poller.wanted(now, is_urgent=True)
        return not job.has_exit

    def _right_ids(self, jobs: Sequence[JobView]) -> list[JobView]:
        """Correct the native ids of jobs that a poll missed; return the jobs whose id was right already."""
        right = [job for job in jobs if not job.has_runner]
        own = [job for job in jobs if job.has_runner]
        corrected = self._native_ids.corrected(own) if own else {}
        for job in own:
            native_id = corrected.get(job.job_id)
            if native_id == job.native_id:
                right.append(job)
            elif native_id is not None:
                log.warning("job %s has the native id %s, not %s", job.job_id, native_id, job.native_id)
                with self._judging.session():
                    job.rename(native_id)
                self._renamed(job.job_id, native_id)
        return right


def _parsed(name: str) -> Marker | None:
    return parse(name, 0)
