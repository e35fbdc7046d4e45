"""Follows the jobs of one batch executor: reads markers and snapshots of the queue, and publishes statuses.

The module has no clock of its own: the caller passes the time.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import JobState, JpsiError, Observation
from jpsi_engine.monitor.publisher import ANSWERS, Publisher
from jpsi_engine.scheduler import (
    Absences,
    JobView,
    Mentions,
    NativeIds,
    Outage,
    PollInterval,
    QueuePoll,
    Snapshot,
    attempt_name,
    is_final,
    log_failed_query,
    reuse_observations,
)
from jpsi_engine.spool import store_requeue_codes
from jpsi_engine.verdict import Marker, is_own, is_refused, parse

log = logging.getLogger(__name__)

# So many seconds after its cancel, a job that waited has mostly ended, without a marker.
_CANCEL_SECONDS = 10.0
# For so many seconds after a submission a job may start, or end, at any moment.
_FRESH_SECONDS = 10.0
# The most accounting queries, and repeated cancels, in one poll. Each takes a while, and other jobs wait.
_MAX_ACCOUNTING_QUERIES = 20
# In so many polls at first, jobs that were attached are polled one by one if they do not show.
_LONE_POLLS = 2
# In so many polls at first, an array that has ended is polled alone for elements that do not show.
_ARRAY_POLLS = 10
# In longest intervals: two polls that are further apart say nothing about the time between them.
_LAPSE = 4
# In shortest intervals: how long a cancel may take before it is repeated.
_REPEAT_INTERVALS = 2
# A job that is judged so soon needs no file about its absence.
_SOON_SECONDS = 1.0
# The most missing jobs of which one poll stores the absence for later processes; each takes a file.
_MOST_STORED = 1000


@attrs.define(slots=False, eq=False)
class JobMonitor(Publisher):
    """The jobs that one executor follows, with all that is known of them. Any thread may call its methods."""

    _queue_poll: QueuePoll = attrs.field(kw_only=True)
    #: Finds the native id under which the batch system has a job, where the known one is wrong.
    _native_ids: NativeIds = attrs.field(kw_only=True)
    #: Called with a job id and its corrected native id; no lock is held then.
    _renamed: Callable[[str, str], None] = attrs.field(kw_only=True)
    #: What other processes have stored about missing jobs; None if each process starts from zero.
    _absences: Absences | None = attrs.field(kw_only=True)
    _last_snapshot: Snapshot | None = attrs.field(default=None, init=False)
    #: When the first of the jobs whose end the last snapshot shows can be judged; None if there are none.
    _settle_time: float | None = attrs.field(default=None, init=False)
    _unknown_states: set[str] = attrs.field(factory=set, init=False)
    _outage: Outage = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._outage = Outage(_LAPSE * self._poll_interval.longest)

    @property
    def _poll_interval(self) -> PollInterval:
        return self._queue_poll.poll_interval

    def find_by_native_id(self, native_id: str, now: float) -> JobView | None:
        """Return a job that is not final and has this native id; its markers up to now are taken in first.

        Raises:
            OSError: the directory of markers cannot be read.
        """
        # if two jobs have the id, the batch system has lost the older one
        job = next((job for job in reversed(self.all()) if job.native_id == native_id), None)
        if job is not None and job.is_followed and self._spool.has_new_markers(job.spool_id):
            self.collect_markers(now)
        return job

    def follow(self, jobs: Collection[JobView], now: float) -> None:
        """Publish the statuses of jobs from now on."""
        with self.session():
            for job in jobs:
                job.is_followed, job.since = True, now
        self._poll_interval.request_poll(now)
        try:
            # one scan of the markers for all jobs; after it the folder of each that has a runner is read
            self.collect_markers(now, jobs=jobs)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)

    def note_change(self, job: JobView, now: float) -> None:
        """Note that jpsi had the batch system change a job, so that a poll is due soon.

        The batch system reports such a change; the job's markers may not.
        """
        job.changed_at = now
        self._poll_interval.request_poll(now, is_urgent=True)

    def next_poll_time(self) -> float | None:
        """Return when the next poll of the batch system is due; None while no job is followed."""
        return self._poll_interval.next_poll_time() if self.has_followed() else None

    def expects_markers(self, now: float) -> bool:
        """Return True if a marker may appear at any moment: a job runs, or was submitted just now."""
        return any(
            job.has_runner and (job.is_running or now - job.since < _FRESH_SECONDS)
            for job in self._followed()
        )

    def _followed(self) -> list[JobView]:
        return [job for job in self.all() if job.is_followed]

    # ---------------------------------------------------------------------------------------- markers

    def _read_folder(self, job: JobView, now: float) -> None:
        """Read what the spool holds about a job; if its folder cannot be read, a later scan retries."""
        try:
            with self.session():
                if self.read_folder(job, now):
                    self._poll_interval.request_poll(now, is_urgent=True)
                job.is_read = True
        except OSError:
            # a job that the batch system has must be followed whatever its folder looks like
            log.warning("job %s: its folder cannot be read", job.job_id, exc_info=True)
        except (KeyError, TypeError, ValueError):
            # a newer jpsi may have written what is there
            job.is_read = True
            log.warning("job %s: its folder cannot be parsed", job.job_id, exc_info=True)

    def note_event(self, now: float) -> None:
        """Note that the batch system announced a change by itself; markers may report the same change."""
        self._poll_interval.request_poll(now)

    def collect_markers(
        self, now: float, appeared: Collection[str] = (), jobs: Iterable[JobView] | None = None
    ) -> None:
        """Take in the markers that jobs have left, and publish what follows.

        Args:
            now: the current time.
            appeared: the names of marker files that the caller knows to have appeared. Another process that
                follows the same jobs may have moved them to the jobs' folders already.
            jobs: the jobs; None for all that are followed.

        Raises:
            OSError: the directory cannot be read. Nothing was taken in, and nothing is lost.
        """
        followed = [job for job in (self._followed() if jobs is None else jobs) if job.has_runner]
        if not followed:
            return
        jobs_of = _by_spool_id(followed)
        spool_ids = jobs_of.keys()

        def enter(spool_id: str) -> None:
            for job in jobs_of[spool_id]:
                self.make_folder(job)

        new = self._spool.collect(spool_ids, only_new=True, enter=enter)
        for job in [job for job in followed if not job.is_read]:
            self._read_folder(job, now)
        announced = {marker.job_id for marker in (parse(name, 0) for name in appeared) if marker is not None}
        for spool_id in announced & spool_ids - new.keys():
            new[spool_id] = self._spool.consumed(spool_id)
        for spool_id, found in new.items():
            self._poll_interval.note_marker(now)
            for job in jobs_of[spool_id]:
                self._take_markers_safely(job, job.own_markers(found), now)

    def _take_markers_safely(self, job: JobView, markers: list[Marker], now: float) -> None:
        try:
            with self.session():
                if self.add_markers(job, markers, now):
                    self._poll_interval.request_poll(now, is_urgent=True)
            if job.is_running:
                # it may end without a marker
                self._poll_interval.note_jobs(now, waiting=0)
        except Exception:
            # its markers stay in its folder, and are read again when the queue says that the job has ended
            log.exception("job %s: its markers could not be processed", job.job_id)

    # ---------------------------------------------------------------------------------------- answers

    def probe_site(self, now: Callable[[], float]) -> None:
        """Probe what the site offers, then judge the jobs that have left an exit marker already."""
        self._backend.probe()
        store_requeue_codes(self._spool.root, self._backend.requeue_exit_codes)
        self._judge_ended(self._followed(), now())

    def _judge_ended(self, jobs: Iterable[JobView], now: float) -> None:
        with self.session():
            for job in [job for job in jobs if job.has_exit and self.get(job.job_id) is job]:
                self.judge(job, now)

    def poll(self, now: Callable[[], float]) -> None:
        """Poll the batch system about every followed job, and publish what follows from the snapshot.

        If the batch system does not answer, the jobs keep their states. The same holds if another process is
        polling at the moment; then the poll is soon due again. The log has one warning when an outage has
        lasted for a while, and one when the batch system answers again.
        """
        jobs, begun = self._followed(), now()
        try:
            snapshot = self._queue_poll.poll_when_due(jobs, now)
        except JpsiError as e:
            log_failed_query(self._backend.display_name, e)
            unanswered_for = self._outage.note_outage(begun, now())
            if unanswered_for is not None:
                log.warning(
                    "%s has not answered for %.0f s: %s", self._backend.display_name, unanswered_for, e
                )
            self._poll_interval.note_jobs(now(), waiting=0)
            self._note_unsettled(now())
            # The probe may have succeeded all the same: then the final exit codes are known.
            self._judge_ended(jobs, now())
            return
        if snapshot is not None:
            if self._outage.note_success():
                log.warning("%s answers again", self._backend.display_name)
            self._apply_snapshot(snapshot, jobs, now())
            self._repeat_cancels(jobs, now)
            self._poll_interval.note_jobs(now(), waiting=self._count_waiting(now()))
            self._note_unsettled(now())

    def _note_unsettled(self, now: float) -> None:
        """Note after a poll if there is a job of which no marker will tell how it has ended."""
        followed = self._followed()
        if any(job.is_ending for job in followed):
            self._poll_interval.note_unsettled(is_soon=True)
        elif any(job.ends_without_marker(now, _CANCEL_SECONDS) for job in followed):
            self._poll_interval.note_unsettled(is_soon=False)

    def _count_waiting(self, now: float) -> int:
        """Return the number of jobs; 0 unless all wait and the machine where they start reports markers."""
        followed = self._followed()
        reports = self.counted_seconds(now - self._poll_interval.longest, now) > 0
        return len(followed) if reports and all(job.is_waiting for job in followed) else 0

    def note_deadline(self, now: float, seconds: float) -> None:
        """Note that a caller waits for a status of a job, for so many seconds at most."""
        self._poll_interval.note_deadline(now, seconds)

    def _repeat_cancels(self, jobs: Iterable[JobView], now: Callable[[], float]) -> None:
        """Ask again for the end of jobs that live on although the batch system accepted their cancel.

        Each job is named alone: the batch system may have ended only some of several. So a poll asks for a
        few jobs only; the others' turn comes with the next polls.
        """
        delay = _REPEAT_INTERVALS * self._poll_interval.shortest

        def is_due(job: JobView, seen: Observation | None) -> bool:
            return self.get(job.job_id) is job and job.needs_cancel(seen, now(), delay, self._grace)

        # first those that were repeated least
        stopped = sorted((it for it in jobs if it.stop is not None), key=lambda it: it.cancel_repeats)
        due = [job for job in stopped if is_due(job, job.queued)][:_MAX_ACCOUNTING_QUERIES]
        try:
            found = self.query_now(due)
            for job in due:
                seen = found.get(job.job_id)
                if seen is None or not is_due(job, seen) or is_refused(seen, job.owner_of(seen)):
                    continue
                job.postpone_cancel(now(), delay)
                refused = self._backend.cancel([job.native_id], {job.native_id: seen})
                job.cancel_repeats += 1
                log.warning(
                    "job %s (%s) still runs after its cancel; jpsi cancelled it on %s again: %s",
                    job.job_id,
                    job.native_id,
                    self._backend.display_name,
                    refused.get(job.native_id, "accepted"),
                )
                self.note_change(job, now())
                self.record_repeated_stop(job)
        except JpsiError as e:
            log_failed_query(self._backend.display_name, e)

    def note_poll_cost(self, seconds: float) -> None:
        """Note for how many seconds the last call of `poll` kept this program busy."""
        self._poll_interval.note_cost(seconds)

    def info(
        self, job: JobView, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> Observation | None:
        """Return the observation of a job; None if the batch system did not list the job.

        A snapshot that is younger than the shortest interval is used. If there is none, the batch system is
        polled about every followed job, and what follows from the new snapshot is published.

        Raises:
            JpsiError: the batch system was polled and did not answer.
        """
        # about a job that is not followed yet, no old snapshot counts
        since = max(min(job.since, now()), job.changed_at)

        def suffices(snapshot: Snapshot) -> bool:
            oldest = now() - self._poll_interval.shortest
            return snapshot.begun >= oldest and snapshot.covers(job.native_id, since)

        snapshot = self._recent_snapshot({job.native_id}, suffices, now, sleep)
        return job.own_observation(self._observed(snapshot, [job.native_id]).get(job.native_id))

    def query_now(self, jobs: Iterable[JobView]) -> dict[str, Observation]:
        """Return what the batch system says at this moment about the native ids of jobs, by job id.

        The batch system may have given a native id to a foreign job since: see `JobView.owner_of`.

        Raises:
            JpsiError: the batch system did not answer.
        """
        native_ids = {job.job_id: job.native_id for job in jobs}
        queried = sorted(set(native_ids.values()))
        seen = self._backend.query_states(queried) if queried else {}
        observed = self._observed(Snapshot(begun=0.0, ended=0.0, queried=None, seen=seen), queried)
        return {job_id: observed[it] for job_id, it in native_ids.items() if it in observed}

    def query_states(
        self, tags: Mapping[str, str | None], now: Callable[[], float], sleep: Callable[[float], None]
    ) -> dict[str, JobState | None]:
        """Return the states of jobs by native id, whichever process follows them.

        Jobs that the batch system does not know are left out, and so are native ids that belong to a
        foreign job now. A job may be reported as present by a snapshot, or by the success of its submit
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
        oldest = time - self._poll_interval.shortest
        known: dict[str, JobState | None] = {
            native_id: JobState.QUEUED
            for native_id in native_ids
            if native_id in jobs and jobs[native_id].accepted_at >= max(oldest, jobs[native_id].changed_at)
        }
        changed = {it: jobs[it].changed_at if it in jobs else oldest for it in native_ids if it not in known}
        if not changed:
            return known

        def suffices(snapshot: Snapshot) -> bool:
            seen = self._observed(snapshot, changed)
            return snapshot.begun >= oldest and all(
                snapshot.covers(native_id, since if is_own(seen.get(native_id), tags[native_id]) else time)
                for native_id, since in changed.items()
            )

        seen = self._observed(self._recent_snapshot(changed.keys(), suffices, now, sleep), changed)
        return known | {name: it.state for name, it in seen.items() if is_own(it, tags[name])}

    def _observed(self, snapshot: Snapshot, native_ids: Collection[str]) -> dict[str, Observation]:
        """Return what a snapshot says about these jobs, by native id."""
        mentions = self._index_mentions(snapshot, native_ids)
        seen = {native_id: mentions.observation_of(native_id) for native_id in native_ids}
        return {native_id: it for native_id, it in seen.items() if it is not None}

    def _recent_snapshot(
        self,
        native_ids: Collection[str],
        suffices: Callable[[Snapshot], bool],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Snapshot:
        """Return the last snapshot if it suffices; otherwise poll and return the new snapshot."""
        snapshot = self._last_snapshot
        if snapshot is None or not suffices(snapshot):
            jobs = self._followed()
            queried = frozenset(native_ids) | {job.native_id for job in jobs}
            snapshot = self._queue_poll.poll_now(queried, suffices, now, sleep)
            self._apply_snapshot(snapshot, jobs, now())
            self._note_unsettled(now())
        return snapshot

    def _apply_snapshot(self, snapshot: Snapshot, jobs: Sequence[JobView], now: float) -> None:
        """Take in a snapshot, unless another thread has taken in a newer one."""
        if self._last_snapshot is not None:
            snapshot = reuse_observations(snapshot, self._last_snapshot)
        followed = jobs
        # of most jobs nothing is new
        jobs = [job for job in jobs if not job.is_unchanged(snapshot.seen.get(job.native_id))]
        mentions = self._index_mentions(snapshot, [job.native_id for job in jobs])
        with self.session():
            if self._last_snapshot is not None and snapshot.begun < self._last_snapshot.begun:
                return
            self._last_snapshot = snapshot
            observed = [
                (job, self._observation_of(job, mentions))
                for job in jobs
                if snapshot.covers(job.native_id, job.since)
            ]
            missed = [job for job, seen in observed if seen is None and job.place is not None]
            mentioned = self._mentioned_arrays(mentions) if missed else frozenset()
            for job, seen in observed:
                is_element = job.place is not None
                job.is_dropped = (
                    seen is None and is_element and mentions.arrays.get(job.native_id) in mentioned
                )
                self._observe(job, seen, now)
            self._load_absences([job for job, _ in observed], snapshot)
            left_out = [job for job in missed if mentions.is_left_out(job.native_id)]
        self._poll_ended_arrays(left_out, mentions.arrays, now)
        self._poll_unverified(jobs, now, snapshot)
        self._judge_observed(jobs, now)
        self._store_absences(followed, snapshot, now)

    def _judge_observed(self, jobs: Sequence[JobView], now: float) -> None:
        """Judge jobs by the last snapshot, and by what else there is about them."""
        # Markers that came during the poll count, whatever the snapshot says; and a job whose markers tell
        # how it ended needs no accounting query.
        try:
            self.collect_markers(now)
            if self._query_accounting(jobs, now):
                self.collect_markers(now)
            doubtful = self._judge_all(jobs, now)
            if doubtful:
                # without the lock: other jobs may change while the batch system looks for these
                right = self._correct_native_ids(doubtful)
                # that may have brought markers from the folders on the remote host
                self.collect_markers(now)
                self._judge_all(self._confirm_lost(right, now), now, is_corrected=True)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)
        ended = (job.ended_since for job in self._followed() if is_final(job.queued))
        times = (since + self._grace for since in ended if since is not None)
        self._settle_time = min((it for it in times if it > now), default=None)

    def _is_about_to_settle(self, job: JobView, now: float) -> bool:
        """Return True if this process judges an ended job in a moment, and has followed it for a while.

        A process that ends at once stores what it has seen, so that a later one need not wait again.
        """
        settles = self._grace if job.ended_since is None else job.ended_since + self._grace - now
        return is_final(job.queued) and 0 < settles <= _SOON_SECONDS and now - job.since >= _FRESH_SECONDS

    def next_settle_time(self) -> float | None:
        """Return when to call `settle`; None while no job is known to have ended and still waits for that."""
        return self._settle_time

    def settle(self, now: float) -> None:
        """Judge the jobs whose end the last snapshot showed: what they left is certainly visible now."""
        self._settle_time = None
        self._judge_observed([job for job in self._followed() if is_final(job.queued)], now)

    def _poll_ended_arrays(self, left_out: Sequence[JobView], arrays: Mapping[str, str], now: float) -> None:
        """Poll about single arrays that have ended, for elements that a query about several jobs left out.

        Some batch systems do not list an element that was cancelled before it began. An answer about several
        jobs may lack it by mistake; one about its array alone does not.
        """
        if not left_out:
            return
        try:
            # one that has left a marker may have run, and been forgotten since
            self.collect_markers(now)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)
            return
        groups: dict[str, list[JobView]] = {}
        for job in left_out:
            if job.absences <= _ARRAY_POLLS:
                groups.setdefault(arrays[job.native_id], []).append(job)
        for group in itertools.islice(groups.values(), _MAX_ACCOUNTING_QUERIES):
            try:
                seen = self._backend.query_states([job.native_id for job in group])
            except JpsiError as e:
                log_failed_query(self._backend.display_name, e)
                return
            mentions = Mentions(Snapshot(begun=now, ended=now, queried=None, seen=seen), arrays)
            with self.session():
                for job in group:
                    observed = self._observation_of(job, mentions)
                    if observed is not None:
                        self._observe(job, observed, now)

    def _poll_unverified(self, jobs: Iterable[JobView], now: float, snapshot: Snapshot) -> None:
        """Poll alone about jobs that were attached and that the last polls did not show.

        Many batch systems say that there is no such job only in answer to a query for it alone, so that a job
        which was in the snapshot's query with others, perhaps of other processes, is polled again; and one
        that was denied once, as two answers count.
        """
        is_listed = snapshot.queried is None or len(snapshot.queried) > 1
        unseen = [job for job in jobs if job.is_unverified and 0 < job.absences <= _LONE_POLLS]
        doubtful = [job for job in unseen if (job.absences < ANSWERS if job.is_denied else is_listed)]
        for job in doubtful[:_MAX_ACCOUNTING_QUERIES]:
            try:
                seen = self.query_now([job]).get(job.job_id)
            except JpsiError as e:
                log_failed_query(self._backend.display_name, e)
                return
            with self.session():
                self._observe(job, seen, now)

    def _load_absences(self, jobs: Iterable[JobView], snapshot: Snapshot) -> None:
        """Load what earlier processes know of jobs that are missing in the first snapshot of this process."""
        new = [job for job in jobs if not job.has_snapshot]
        for job in new:
            job.has_snapshot = True
        left = [job for job in new if job.has_left_queue]
        if self._absences is not None and left:
            system = self._backend.system_digest()
            for job in left:
                job.earlier_absence = self._absences.load(job, system, snapshot.begun) or job.earlier_absence

    def _store_absences(self, jobs: Iterable[JobView], snapshot: Snapshot, now: float) -> None:
        """Store for later processes how long each missing job has been missing; forget jobs that are back."""
        if self._absences is None:
            return
        with self.session():
            left = {
                job: self.absence(job, now)
                for job in jobs
                if job.has_left_queue
                and job.has_runner
                and not self._is_about_to_settle(job, now)
                and snapshot.covers(job.native_id, job.since)
                and self.get(job.job_id) is job
            }
        names = self._absences.names()
        if names:
            found = (job for job in jobs if attempt_name(job) in names and job not in left)
            self._absences.remove(job for job in found if snapshot.covers(job.native_id, job.since))
        if left:
            self._absences.prune(names - set(map(attempt_name, left)), now)
            system = self._backend.system_digest()
            for job in sorted(left, key=lambda it: left[it].absent or 0.0, reverse=True)[:_MOST_STORED]:
                self._absences.store(job, system, left[job], now)

    def _mentioned_arrays(self, mentions: Mentions) -> frozenset[str]:
        """Return the native ids of the arrays whose elements a snapshot mentions, followed here or not."""
        seen = mentions.snapshot.seen
        others = [native_id for native_id in seen if native_id not in mentions.arrays]
        known = (array for native_id, array in mentions.arrays.items() if native_id in seen)
        return frozenset(known).union(self._backend.arrays_of(others).values())

    def _index_mentions(self, snapshot: Snapshot, native_ids: Collection[str]) -> Mentions:
        return Mentions(snapshot, self._backend.arrays_of(list(native_ids)))

    def _observation_of(self, job: JobView, mentions: Mentions) -> Observation | None:
        seen = mentions.observation_of(job.native_id)
        if seen is not None or job.place is None:
            return seen
        ended = mentions.observation_of_unstarted(job.native_id)
        has_begun = ended is not None and (
            bool(job.markers) or self._spool.has_begun(job.spool_id, job.attempt)
        )
        return None if has_begun else ended

    def _confirm_lost(self, jobs: Sequence[JobView], now: float) -> list[JobView]:
        """Return the jobs that may be judged now; each that would be judged lost is polled once more, alone.

        To a query about one job alone, a batch system answers with the state or says that there is no such
        job. The answer to a query about many jobs may leave out a job by mistake. Elements of one array are
        polled together, unless a query can name a single one.
        """
        sure, lost = list[JobView](), list[JobView]()
        for job in jobs:
            is_sure = job.is_denied or job.foreign_job is not None or not self.is_lost(job, now)
            (sure if is_sure else lost).append(job)
        queries = self._backend.names_for_one([job.native_id for job in lost])
        groups: dict[str, list[JobView]] = {}
        for job in lost:
            groups.setdefault(queries[job.native_id], []).append(job)
        for group in itertools.islice(groups.values(), _MAX_ACCOUNTING_QUERIES):
            if not self._poll_alone(group, now):
                break
            sure += group
        if len(sure) < len(jobs):
            self._poll_interval.request_poll(now, is_urgent=True)
        return sure

    def _poll_alone(self, jobs: Sequence[JobView], now: float) -> bool:
        """Poll about one job, or elements of one array; return False if the batch system did not answer."""
        try:
            seen = self.query_now(jobs)
        except JpsiError as e:
            log_failed_query(self._backend.display_name, e)
            return False
        with self.session():
            for job in jobs:
                self._observe(job, seen.get(job.job_id), now)
                job.is_denied = job.absent_since is not None
        # an answer about an array may have left out these elements
        elements = self._backend.arrays_of([job.native_id for job in jobs])
        left = [
            job for job in jobs if job.is_denied and not job.has_no_accounting and job.native_id in elements
        ]
        return not left or self._apply_accounting(left, [job.native_id for job in left], now)

    def _observe(self, job: JobView, seen: Observation | None, now: float) -> None:
        had_own_id = job.foreign_job is None
        job.observe(seen, now)
        if had_own_id and job.foreign_job is not None:
            log.warning(
                "job %s: %s has given its native id %s to another job",
                job.job_id,
                self._backend.display_name,
                job.native_id,
            )
        if seen is None or not seen.exists:
            if job.is_unverified and self._backend.capabilities.visible_within is not None:
                # a poll soon shows whether such a job exists
                self._poll_interval.request_poll(now)
            return
        if seen.state is None and seen.native_state not in self._unknown_states:
            self._unknown_states.add(seen.native_state)
            log.warning(
                "%s calls the state of job %s %r, which this version does not know; the job keeps its state",
                self._backend.display_name,
                job.native_id,
                seen.native_state,
            )

    def _query_accounting(self, jobs: Iterable[JobView], now: float) -> bool:
        """Ask the accounting how jobs ended that have left the queue; the longest unasked job comes first.

        Returns True if there were such jobs.
        """
        gone = [job for job in jobs if job.absent_since is not None and not is_final(job.accounted)]
        left: dict[str, list[JobView]] = {}
        for job in sorted(gone, key=lambda job: (job.accounting_queried, job.native_id)):
            if self.get(job.job_id) is job:
                left.setdefault(job.native_id, []).append(job)
        for native_ids in itertools.islice(
            self._backend.split_for_accounting(list(left)), _MAX_ACCOUNTING_QUERIES
        ):
            if not self._apply_accounting(
                [job for native_id in native_ids for job in left[native_id]], native_ids, now
            ):
                break
        return bool(left)

    def _apply_accounting(self, jobs: Iterable[JobView], native_ids: Sequence[str], now: float) -> bool:
        """Send one query to the accounting; return False if it did not answer.

        A failed query says nothing about other jobs than its own.
        """
        try:
            found = self._backend.query_accounting(native_ids)
        except JpsiError as e:
            log_failed_query(f"the accounting of {self._backend.display_name}", e)
            for job in jobs:
                job.note_accounting_failure(now)
            return False
        with self.session():
            for job in jobs:
                job.apply_accounting(found, now)
        return True

    def _judge_all(self, jobs: Iterable[JobView], now: float, *, is_corrected: bool = False) -> list[JobView]:
        """Judge jobs; return those that the batch system may have under another id, unless `is_corrected`."""
        # Most jobs wait, and nothing is new about them; only for jobs that have left does time alone matter.
        open_ = [job for job in jobs if job.needs_verdict or job.has_left_queue or job.markers]
        doubtful = []
        with self.session():
            for job in [job for job in open_ if self.get(job.job_id) is job]:
                try:
                    if is_corrected or not self._is_doubtful(job, now):
                        self.judge(job, now)
                    else:
                        doubtful.append(job)
                except Exception:
                    # this job is judged again after the next poll; the other jobs are judged now all the same
                    log.exception("job %s could not be judged", job.job_id)
        return doubtful

    def _is_doubtful(self, job: JobView, now: float) -> bool:
        """Return True if the batch system may still have a job that seems gone, under this id or another."""
        if not job.has_left_queue or self.is_conclusive(job):
            return False
        if not job.has_runner:
            return self.is_lost(job, now)
        # another process may have moved its last markers to the job's folder
        found = job.own_markers(self._spool.consumed(job.spool_id))
        if len(found) > len(job.markers) and self.add_markers(job, found, now):
            self._poll_interval.request_poll(now, is_urgent=True)
        return not job.has_exit

    def _correct_native_ids(self, jobs: Sequence[JobView]) -> list[JobView]:
        """Correct the native ids of jobs that a poll missed; return the jobs whose id was right already."""
        right = [job for job in jobs if not job.has_runner]
        own = [job for job in jobs if job.has_runner]
        corrected = self._native_ids.correct_ids(own) if own else {}
        for job in own:
            native_id = corrected.get(job.job_id)
            if native_id == job.native_id:
                right.append(job)
            elif native_id is not None:
                log.warning("job %s has the native id %s, not %s", job.job_id, native_id, job.native_id)
                with self.session():
                    job.change_native_id(native_id)
                self._renamed(job.job_id, native_id)
        return right


def _by_spool_id(jobs: Collection[JobView]) -> Mapping[str, Sequence[JobView]]:
    # made for each of many scans of many jobs: a list for each job would take most of the time
    single = {job.spool_id: (job,) for job in jobs}
    if len(single) == len(jobs):
        return single
    # jobs are attached to the files of others
    found: dict[str, list[JobView]] = {}
    for job in jobs:
        found.setdefault(job.spool_id, []).append(job)
    return found
