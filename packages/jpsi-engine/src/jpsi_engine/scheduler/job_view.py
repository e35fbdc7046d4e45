"""What one process knows of one job of a batch system that is not final, and how that grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from jpsi.plugin import JobState, Observation
from jpsi.plugin.engine import Owner, owner_of
from jpsi_engine.spool import UNNAMED, Place, array_tag, tag
from jpsi_engine.verdict import Marker, Stop

_NOT_YET = float("inf")
_NEVER = float("-inf")
# By how much the clocks of a batch system and of its file servers may differ
_SKEW = timedelta(hours=1)


@attrs.frozen(slots=True)
class Absence:
    """The time for which the answers of a batch system have left out a job, or said that it has ended."""

    #: How many answers in a row have left it out.
    answers: int = 0
    #: For how many seconds the queue has left it out, the accounting has not known how it ended, and one of
    #: them has said that it has ended; None if it is not so.
    absent: float | None = None
    unaccounted: float | None = None
    over: float | None = None

    def later(self, seconds: float) -> Absence:
        """Return what is true after so many more seconds, if it still is so then."""

        def more(before: float | None) -> float | None:
            return None if before is None else before + seconds

        return Absence(self.answers, more(self.absent), more(self.unaccounted), more(self.over))


@attrs.define(slots=True, eq=False)
class Tracked:
    """One job. Times are by the clock of whoever follows it."""

    job_id: str
    #: The id in the spool; another than `job_id` for a job that was attached.
    spool_id: str
    #: 0 for a job that is none of jpsi's: nothing of it is in the spool.
    attempt: int
    native_id: str
    #: Which element of which array it is; None for a job by itself.
    place: Place | None = None
    #: Whether its statuses are published; before, the job is not bound.
    is_followed: bool = False
    #: Answers to questions that were begun before this tell nothing of it: it was followed or ended then.
    since: float = _NOT_YET
    #: When its submission was begun, if this process has seen the batch system accept it.
    accepted: float = _NEVER
    #: When jpsi last had the batch system do something to it; what came of it no older answer tells.
    changed: float = _NEVER
    #: Whether what was on disk about it when it was followed first has been read.
    is_read: bool = False
    markers: Sequence[Marker] = ()
    stop: Stop | None = None
    queued: Observation | None = None
    accounted: Observation | None = None
    #: Whether the accounting, asked since the job left the queue, does not know it; or there is none.
    is_unaccounted: bool = False
    has_no_accounting: bool = False
    #: Since when the accounting, whenever it answered, has not known how it ended.
    unaccounted_since: float | None = None
    #: When it was asked last.
    accounting_asked: float = _NEVER
    #: When the batch system, or the job itself, first said that it was there. Accounts of earlier ends are
    #: those of an older job with the same native id.
    there_at: datetime | None = None
    #: Whether the queue has said something new about it since its status was last thought of.
    is_unjudged: bool = True
    #: Since when the queue has not known it, or it is known to have ended.
    absent_since: float | None = None
    ended_since: float | None = None
    #: How many answers in a row, each whole, have not known it.
    absences: int = 0
    #: What earlier processes saw of that, before the first answer that this one had.
    earlier: Absence = Absence()
    #: Whether this process has taken in an answer about it.
    is_heard_of: bool = False
    #: Whether the batch system said so of this job by itself: it was asked about it alone, or named it.
    is_denied: bool = False
    #: When the batch system took it, as an answer with its tag said.
    submitted: datetime | None = None
    #: What the batch system said about another job, to which it has given the native id.
    stranger: Observation | None = None
    #: Whether the queue, when it was last asked, told of other elements of its array and not of it.
    is_dropped: bool = False

    @property
    def has_runner(self) -> bool:
        """Whether it is a job of jpsi's, which leaves markers."""
        return self.attempt > 0

    @property
    def is_unverified(self) -> bool:
        """True if it was attached to, and the batch system has not shown such a job yet."""
        return not self.has_runner and self.queued is None and self.accounted is None

    @property
    def is_attachable(self) -> bool:
        """True if its native id is one of the batch system's, by all that is known."""
        return not self.is_unverified and not self.native_id.startswith(UNNAMED)

    @property
    def tag(self) -> str | None:
        """The tag that the batch system's job carries; None for a job that is none of jpsi's."""
        if not self.has_runner:
            return None
        return tag(self.spool_id, self.attempt) if self.place is None else array_tag(self.place.array)

    @property
    def has_exit(self) -> bool:
        """Whether its last run has left how it ended."""
        return _has_exit(self.markers)

    @property
    def has_left(self) -> bool:
        """Whether the queue says that it has ended, or does not know it."""
        return self.absent_since is not None or is_final(self.queued)

    @property
    def is_only_queued(self) -> bool:
        """Whether all that is known of it is that the queue has it, and what that says."""
        is_told_of = bool(self.markers) or self.stop is not None or self.accounted is not None
        return not is_told_of and self.queued is not None and not self.has_left

    @property
    def is_running(self) -> bool:
        """Whether it is known to run, so that it may leave an exit marker any moment."""
        if not self.has_runner or self.has_exit:
            return False
        if self.queued is not None and self.queued.state is JobState.ACTIVE:
            return True
        last = _last_run(self.markers)
        return any(marker.kind == "active" and marker.restart == last for marker in self.markers)

    def own_markers(self, markers: Iterable[Marker]) -> list[Marker]:
        """Return those of these markers that are of its attempt."""
        return [marker for marker in markers if marker.attempt == self.attempt]

    def take(self, markers: Iterable[Marker], now: float) -> bool:
        """Know these markers as well; returns whether one of them tells a new end."""
        # Two threads, and other processes, may have seen more than this look at the folder.
        known = {marker.name: marker for marker in (*self.markers, *markers)}
        old, self.markers = self.markers, list(known.values())
        if self.markers and self.there_at is None:
            self.there_at = min(marker.time for marker in self.markers)
        is_end = self.has_exit and (not _has_exit(old) or _last_run(self.markers) > _last_run(old))
        if is_end:
            # What the queue said before that is old: only a new answer tells how it saw the end.
            self.queued = self.accounted = self.absent_since = None
            self.absences, self.earlier = 0, Absence()
            self.since = now
        return is_end

    def is_as_before(self, seen: Observation | None) -> bool:
        """Whether the queue says what it said, and nothing else is to be thought of, as of jobs that wait."""
        if seen is None or seen is not self.queued or seen.final:
            return False
        return self.absent_since is None and not self.is_unjudged and not self.markers

    def own(self, seen: Observation | None) -> Observation | None:
        """Return what was said about this job; None if that is about a stranger's, or that there is none."""
        if seen is None or not seen.exists or self.owner_of(seen) is Owner.STRANGER:
            return None
        return seen

    def owner_of(self, seen: Observation) -> Owner:
        """Return whose job an observation of this native id is about."""
        restarts = 0 if self.queued is None else self.queued.restarts or 0
        is_requeued = bool(restarts or seen.restarts) or _last_run(self.markers) > 0
        # a time that several jobs may have says nothing any more once another has the native id
        submitted = self.submitted if self.stranger is None or seen.tag else None
        began = min((marker.time for marker in self.markers), default=None)
        return owner_of(seen, self.tag, submitted, began=began, is_requeued=is_requeued)

    def observe(self, seen: Observation | None, now: float) -> None:
        """Know what the queue says about its native id; None is that there is no such job."""
        believed = self._believed(seen)
        if believed is None:
            self.absent_since = now if self.absent_since is None else self.absent_since
            self.absences += 1
            self.is_denied = self.is_denied or (seen is not None and not seen.exists)
            return
        self.is_unjudged = self.is_unjudged or self.absent_since is not None or believed != self.queued
        self.queued, self.absent_since = believed, None
        self.absences, self.is_denied, self.stranger = 0, False, None
        self.accounted, self.is_unaccounted, self.unaccounted_since = None, False, None
        if not is_final(believed):
            self.ended_since, self.earlier = None, Absence()
            self.there_at = self.there_at or believed.time

    def _believed(self, seen: Observation | None) -> Observation | None:
        """Return what counts of an observation: that of an end needs to be known to be this job's.

        Where the batch system tells no tags, the job's own markers are as good: something of it ran. What
        it shows without the tag may be another job.
        """
        if seen is None or not seen.exists:
            return None
        whose = self.owner_of(seen)
        if whose is Owner.STRANGER:
            self.stranger = self.stranger if self._is_before(seen) else seen
            return None
        if whose is Owner.OWN:
            if seen.tag:
                self.submitted = seen.submitted or self.submitted
        elif seen.tag is not None:
            # what it shows without the tag counts as life while nothing else tells of an end
            return None if seen.final or self.has_exit else seen
        elif seen.final and not self.markers:
            return None
        return seen

    def _is_before(self, seen: Observation) -> bool:
        """Return whether an observation is about a job that had the native id before this one."""
        if seen.submitted is None or self.submitted is None:
            return False
        return seen.submitted < self.submitted

    def account(self, found: Mapping[str, Observation] | None, now: float) -> None:
        """Know what the accounting says about it; None if there is none."""
        self.accounting_asked = now
        if self.absent_since is None:
            return
        self.has_no_accounting = found is None
        told = self._believed(None if found is None else found.get(self.native_id))
        self.accounted = None if told is None or self._is_older(told) else told
        # one that it calls waiting or running, though the queue has forgotten it, may well live
        self.is_unaccounted = self.accounted is None
        if self.is_unaccounted:
            self.unaccounted_since = now if self.unaccounted_since is None else self.unaccounted_since
        elif is_final(self.accounted):
            self.ended_since = now if self.ended_since is None else self.ended_since
        else:
            self._expect_account()

    def _is_older(self, account: Observation) -> bool:
        """Whether an account tells of the end of an older job."""
        if account.time is None or self.there_at is None:
            return False
        return account.time < self.there_at - _SKEW

    def account_later(self, now: float) -> None:
        """Know that the accounting did not answer: when it does again, it may take a while to hear of all."""
        self.accounting_asked = now
        self._expect_account()

    def _expect_account(self) -> None:
        """Begin anew to wait for the accounting to tell how it ended."""
        self.unaccounted_since = None
        self.earlier = attrs.evolve(self.earlier, unaccounted=None)

    def rename(self, native_id: str) -> None:
        """Ask by another native id from now on, of which nothing is known yet."""
        self.native_id = native_id
        self.queued = self.accounted = self.absent_since = self.ended_since = self.unaccounted_since = None
        self.absences, self.is_denied, self.stranger, self.submitted = 0, False, None, None
        self.earlier = Absence()
        self.accounting_asked = _NEVER


def is_final(observation: Observation | None) -> bool:
    """Whether a batch system says that a job has ended."""
    return observation is not None and observation.final


def _last_run(markers: Iterable[Marker]) -> int:
    return max((marker.restart for marker in markers), default=0)


def _has_exit(markers: Sequence[Marker]) -> bool:
    if not markers:  # as of all jobs that wait
        return False
    last = _last_run(markers)
    return any(marker.kind == "exit" and marker.restart == last for marker in markers)
