"""Follows the jobs of one batch executor: takes in markers and answers, and publishes what follows from them.

Nothing here knows a clock of its own: whoever calls says how late it is.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from jpsi.plugin import JobState, JpsiError, Observation
from jpsi.plugin.engine import is_own
from jpsi_engine.monitor.publisher import Judging
from jpsi_engine.scheduler import (
    Answer,
    Asking,
    Backend,
    MissingJobs,
    NativeIds,
    Poller,
    Said,
    Silence,
    Tracked,
    compared,
    is_final,
    is_recent,
    name_of,
    tell,
)
from jpsi_engine.spool import Spool, keep_codes
from jpsi_engine.verdict import Marker, Stop, parse

log = logging.getLogger(__name__)

# How long after a submission a job is expected to start, or end, at once.
_FRESH_SECONDS = 10.0
# How many questions the accounting is asked at a time; each may take a while, and other jobs wait for them.
_QUESTIONS = 20
# In longest intervals: questions that are further apart tell nothing of the time between them.
_LAPSE = 4
# Of so many jobs that are missing at once is written down for later processes how long; each takes a file.
_MOST_KEPT = 1000


class Tracking:
    """The jobs that one executor follows. Methods may be called from any thread.

    Args:
        backend: who is asked about jobs that have left the queue.
        spool: where markers are.
        poller: decides when the queue is to be asked.
        asking: asks it.
        judging: says and publishes what follows.
        native_ids: tells by which id the batch system has a job that it does not know by another.
        renamed: called with a job id and such a native id, under no lock.
        missing: what other processes know of jobs that are missing; None where each begins anew.
    """

    def __init__(  # noqa: PLR0913  the parts that it connects
        self,
        backend: Backend,
        spool: Spool,
        *,
        poller: Poller,
        asking: Asking,
        judging: Judging,
        native_ids: NativeIds,
        renamed: Callable[[str, str], None],
        missing: MissingJobs | None = None,
    ) -> None:
        self._backend = backend
        self._spool = spool
        self._poller = poller
        self._asking = asking
        self._judging = judging
        self._native_ids = native_ids
        self._renamed = renamed
        self._missing = missing
        self._heard: Answer | None = None
        self._strange_words: set[str] = set()
        self._silence = Silence(_LAPSE * poller.longest)

    def add(self, job: Tracked) -> None:
        """Know a job; nothing is published before `follow`."""
        self._judging.add(job)

    def add_found(self, job: Tracked) -> None:
        """As `add`, unless the job is known already."""
        self._judging.add_found(job)

    def get(self, job_id: str) -> Tracked | None:
        """The job with this id, unless it is final or was never here."""
        return self._judging.get(job_id)

    def all(self) -> list[Tracked]:
        """Every job that is not final."""
        return self._judging.all()

    def known_as(self, native_id: str, now: float) -> Tracked | None:
        """A job that is not final and has this native id; what it has left until now is taken in.

        Raises:
            OSError: the directory of markers cannot be read.
        """
        # of two, the batch system has lost the older one
        job = next((job for job in reversed(self.all()) if job.native_id == native_id), None)
        if job is not None and job.is_followed and self._spool.has_news(job.spool_id):
            self.see_markers(now)
        return job

    def remember_stop(self, job: Tracked, stop: Stop) -> None:
        """Write down that jpsi told a job to end, before it does."""
        self._judging.remember_stop(job, stop)

    def follow(self, job: Tracked, now: float) -> None:
        """Publish the statuses of a job from now on."""
        if job.is_read:
            self.follow_all([job], now)
            return
        with self._judging.session():
            job.is_followed, job.since = True, now
        self._poller.wanted(now)
        self._begin(job, now)

    def follow_all(self, jobs: Collection[Tracked], now: float) -> None:
        """As `follow`, for many jobs: what they have left is looked for once."""
        with self._judging.session():
            for job in jobs:
                job.is_followed, job.since = True, now
        self._poller.wanted(now)
        try:
            # what is in their folders then is read job by job, where there may be something
            self._see(jobs, now)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)

    def changed(self, job: Tracked, now: float) -> None:
        """Something was done to a job of which the batch system tells, and markers may not."""
        job.changed = now
        self._poller.wanted(now, is_urgent=True)

    def next_question(self) -> float | None:
        """When the batch system is to be asked next; None while there is nothing to ask."""
        return self._poller.due() if self._judging.has_followed() else None

    def expects_markers(self, now: float) -> bool:
        """Whether a marker may appear any moment: a job runs, or was submitted only just now."""
        return any(
            job.has_runner and (job.is_running or now - job.since < _FRESH_SECONDS)
            for job in self._followed()
        )

    def _followed(self) -> list[Tracked]:
        return [job for job in self.all() if job.is_followed]

    # ---------------------------------------------------------------------------------------- markers

    def _begin(self, job: Tracked, now: float) -> None:
        """Read what is on disk about a job already, now or in a later round."""
        try:
            with self._judging.session():
                if self._judging.read(job, now):
                    self._poller.wanted(now, is_urgent=True)
                job.is_read = True
        except OSError:
            # nothing may keep a job from being followed that the batch system has
            log.warning("job %s: its folder cannot be read", job.job_id, exc_info=True)
        except (KeyError, TypeError, ValueError):
            # a newer jpsi may have written what is there
            job.is_read = True
            log.warning("job %s: its folder cannot be understood", job.job_id, exc_info=True)

    def told(self, now: float) -> None:
        """The batch system itself has news, of which markers may tell as well."""
        self._poller.wanted(now)

    def see_markers(self, now: float, appeared: Collection[str] = ()) -> None:
        """Take in what jobs have left, and publish it.

        Args:
            now: how late it is.
            appeared: the names of files that are known to have appeared; another process that follows the
                same jobs may have taken them to the jobs' folders already.

        Raises:
            OSError: the directory cannot be read; nothing is known then, and nothing lost.
        """
        self._see(self._followed(), now, appeared)

    def _see(self, jobs: Iterable[Tracked], now: float, appeared: Collection[str] = ()) -> None:
        """Take in what these jobs have left; see `see_markers`."""
        followed = [job for job in jobs if job.has_runner]
        if not followed:
            return
        spool_ids = {job.spool_id for job in followed}

        # of many jobs mostly none has left anything
        @functools.cache
        def by_spool_id() -> Mapping[str, Sequence[Tracked]]:
            found: dict[str, list[Tracked]] = {}
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

    def _take_fenced(self, job: Tracked, markers: list[Marker], now: float) -> None:
        try:
            with self._judging.session():
                if self._judging.take(job, markers, now):
                    self._poller.wanted(now, is_urgent=True)
        except Exception:
            # its markers are in its folder, and are read again when the queue says that it has ended
            log.exception("job %s: what it left could not be taken in", job.job_id)

    # ---------------------------------------------------------------------------------------- answers

    def find_out(self, now: Callable[[], float]) -> None:
        """Find out what the site offers, and judge by that what has ended already."""
        self._asking.find_out()
        keep_codes(self._spool.root, self._backend.requeue_exit_codes)
        self._judge_ended(self._followed(), now())

    def _judge_ended(self, jobs: Iterable[Tracked], now: float) -> None:
        with self._judging.session():
            for job in [job for job in jobs if job.has_exit and self.get(job.job_id) is job]:
                self._judging.judge(job, now)

    def ask(self, now: Callable[[], float]) -> None:
        """Have the batch system asked about every job that is followed, and publish what that tells.

        A question that is not answered changes nothing; nor does one that another process is asking, which is
        due again soon. A batch system that has not answered for a while is told of, once, and that it answers
        again.
        """
        jobs, begun = self._followed(), now()
        try:
            answer = self._asking.due(jobs, now)
        except JpsiError as e:
            tell(self._backend.place, e)
            silent_for = self._silence.unanswered(begun, now())
            if silent_for is not None:
                log.warning("%s has not answered for %.0f s: %s", self._backend.place, silent_for, e)
            # What the site offers may have been found out all the same: which exit codes are final.
            self._judge_ended(jobs, now())
            return
        if answer is not None:
            if self._silence.answered():
                log.warning("%s answers again", self._backend.place)
            self._hear(answer, jobs, now())

    def asked(self, seconds: float) -> None:
        """The last call of `ask` kept this program busy for so many seconds."""
        self._poller.cost(seconds)

    def info(
        self, job: Tracked, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> Observation | None:
        """What the batch system said about a job within the shortest interval; None if it did not mention it.

        If it has to be asked, it is about every job that is followed, and what that tells is published.

        Raises:
            JpsiError: the batch system was asked and did not answer.
        """
        # one that is not followed yet is asked about anew
        since = max(min(job.since, now()), job.changed)

        def suffices(answer: Answer) -> bool:
            return is_recent(answer, job, since, now() - self._poller.shortest)

        answer = self._recent({job.native_id}, suffices, now, sleep)
        return job.own(self._said(answer, {job.native_id}).of(job.native_id))

    def present(self, jobs: Iterable[Tracked]) -> dict[str, Observation]:
        """Return what the batch system says at this moment about the native ids of jobs, by job id.

        A native id may be a stranger's by now: see `Tracked.owner_of`.

        Raises:
            JpsiError: the batch system did not answer.
        """
        native_ids = {job.job_id: job.native_id for job in jobs}
        asked = sorted(set(native_ids.values()))
        seen = self._backend.states(asked) if asked else {}
        said = self._said(Answer(begun=0.0, ended=0.0, asked=None, seen=seen), asked)
        told = {job_id: said.of(native_id) for job_id, native_id in native_ids.items()}
        return {job_id: it for job_id, it in told.items() if it is not None}

    def standing(
        self, tags: Mapping[str, str | None], now: Callable[[], float], sleep: Callable[[float], None]
    ) -> dict[str, JobState | None]:
        """The states of jobs, whoever follows them; those that the batch system does not know are left out.

        Left out are those, too, whose native id is a stranger's. That one is there may be an answer, or the
        word of its submit command, of up to the shortest interval ago; that one is not is never older than
        this call.

        Args:
            tags: the native ids, each with the tag that the job carries; None for a job that is none of
                jpsi's.
            now: the clock.
            sleep: waits for so many seconds.

        Raises:
            JpsiError: the batch system was asked and did not answer.
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

        def suffices(answer: Answer) -> bool:
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
        suffices: Callable[[Answer], bool],
        now: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> Answer:
        """An answer that suffices: the last one, or one that is asked for now, and then taken in."""
        answer = self._heard
        if answer is None or not suffices(answer):
            jobs = self._followed()
            asked = frozenset(native_ids) | {job.native_id for job in jobs}
            answer = self._asking.at_once(asked, suffices, now, sleep)
            self._hear(answer, jobs, now())
        return answer

    def _hear(self, answer: Answer, jobs: Sequence[Tracked], now: float) -> None:
        """Take in an answer, unless another thread was told what is newer."""
        if self._heard is not None:
            answer = compared(answer, self._heard)
        followed = jobs
        # of most nothing is new
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
        # Markers that came while a question was under way count, whatever the answer was; and a job that has
        # left how it ended costs the accounting no question.
        try:
            self.see_markers(now)
            if self._ask_accounting(jobs, now):
                self.see_markers(now)
            doubtful = self._judge_all(jobs, now)
            if doubtful:
                # under no lock: other jobs have news while the batch system looks for these
                right = self._right_ids(doubtful)
                # their folders elsewhere were looked into as well
                self.see_markers(now)
                self._judge_all(self._confirmed(right, now), now, is_right=True)
        except OSError:
            log.warning("%s cannot be read", self._spool.root, exc_info=True)
        self._keep_missing(followed, answer, now)

    def _recall_missing(self, jobs: Iterable[Tracked], answer: Answer) -> None:
        """Add what earlier processes know of jobs that are missing in the first answer that this one has."""
        new = [job for job in jobs if not job.is_heard_of]
        for job in new:
            job.is_heard_of = True
        left = [job for job in new if job.has_left]
        if self._missing is not None and left:
            system = self._backend.system()
            for job in left:
                job.earlier = self._missing.recall(job, system, answer.begun) or job.earlier

    def _keep_missing(self, jobs: Iterable[Tracked], answer: Answer, now: float) -> None:
        """Write down for later processes what is known of jobs that are missing, and of no others."""
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

    def _arrays_there(self, said: Said) -> frozenset[str]:
        """The native ids of the arrays of which an answer mentions elements, whoever follows these."""
        seen = said.answer.seen
        others = [native_id for native_id in seen if native_id not in said.arrays]
        known = (array for native_id, array in said.arrays.items() if native_id in seen)
        return frozenset(known).union(self._backend.arrays_of(others).values())

    def _said(self, answer: Answer, native_ids: Collection[str]) -> Said:
        return Said(answer, self._backend.arrays_of(list(native_ids)))

    def _said_of(self, job: Tracked, said: Said) -> Observation | None:
        seen = said.of(job.native_id)
        if seen is not None or job.place is None:
            return seen
        ended = said.of_one_that_never_began(job.native_id)
        has_begun = ended is not None and (
            bool(job.markers) or self._spool.has_begun(job.spool_id, job.attempt)
        )
        return None if has_begun else ended

    def _confirmed(self, jobs: Sequence[Tracked], now: float) -> list[Tracked]:
        """Return those of these jobs that may be judged: of one that would be lost, it is asked once more.

        What is asked about one job alone is answered with its state, or with the word that there is none;
        an answer about many may leave out what it should not.
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

    def _ask_alone(self, job: Tracked, now: float) -> bool:
        """Ask about one job; returns False if that was not answered."""
        try:
            seen = self.present([job]).get(job.job_id)
        except JpsiError as e:
            tell(self._backend.place, e)
            return False
        with self._judging.session():
            self._observe(job, seen, now)
            job.is_denied = job.absent_since is not None
        return True

    def _observe(self, job: Tracked, seen: Observation | None, now: float) -> None:
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
                # whether there is such a job is to be known soon
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

    def _ask_accounting(self, jobs: Iterable[Tracked], now: float) -> bool:
        """Ask how jobs ended that have left the queue, those first that were asked about the longest ago.

        Returns whether there were any.
        """
        gone = [job for job in jobs if job.absent_since is not None and not is_final(job.accounted)]
        left: dict[str, list[Tracked]] = {}
        for job in sorted(gone, key=lambda job: (job.accounting_asked, job.native_id)):
            if self.get(job.job_id) is job:
                left.setdefault(job.native_id, []).append(job)
        for native_ids in itertools.islice(self._backend.questions(list(left)), _QUESTIONS):
            if not self._account(
                [job for native_id in native_ids for job in left[native_id]], native_ids, now
            ):
                break
        return bool(left)

    def _account(self, jobs: Iterable[Tracked], native_ids: Sequence[str], now: float) -> bool:
        """Ask the accounting one question; whether it was answered, which says nothing of other jobs."""
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

    def _judge_all(self, jobs: Iterable[Tracked], now: float, *, is_right: bool = False) -> list[Tracked]:
        """Judge jobs; returns those which the batch system may have by another id, unless theirs is right."""
        # Most wait, and nothing is new about them; time alone makes a difference to those that have left.
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
                    # it is judged again after the next question, and costs no other job its end
                    log.exception("job %s could not be judged", job.job_id)
        return doubtful

    def _is_doubtful(self, job: Tracked, now: float) -> bool:
        """Whether the batch system may still have a job, by its id or another, by all that it has left."""
        if not job.has_left or self._judging.settles(job):
            return False
        if not job.has_runner:
            return self._judging.is_lost(job, now)
        # another process may have taken its last markers to the job's folder
        found = job.own_markers(self._spool.consumed(job.spool_id))
        if len(found) > len(job.markers) and self._judging.take(job, found, now):
            self._poller.wanted(now, is_urgent=True)
        return not job.has_exit

    def _right_ids(self, jobs: Sequence[Tracked]) -> list[Tracked]:
        """Have jobs asked about by the ids that they have; returns those that were already."""
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
