"""The state of one unfinished batch job as one process sees it, and its changes with each new fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from jpsi.plugin import JobState, Observation
from jpsi_engine.spool import UNNAMED, ArrayMember, array_tag, tag
from jpsi_engine.verdict import Marker, Owner, Stop, has_exit_marker, of_last_run, owner_of, restart_count

_NOT_YET = float("inf")
_NEVER = float("-inf")
# The clocks of a batch system and of its file servers may differ by so much.
_SKEW = timedelta(hours=1)
# The most times that a cancel without effect is repeated.
_MOST_REPEATS = 5


@attrs.frozen(slots=True)
class Absence:
    """The time and the snapshots for which a batch system has left a job out, or reported its end."""

    #: The number of snapshots in a row that have left the job out.
    answers: int = 0
    #: The seconds for which the queue has left the job out, for which the accounting has had no record of it,
    #: and since the queue or the accounting first reported that it has ended; None if that is not the case.
    absent: float | None = None
    unaccounted: float | None = None
    over: float | None = None

    def extended(self, seconds: float) -> Absence:
        """Return this absence after so many more seconds, for the case that it still lasts then."""

        def more(before: float | None) -> float | None:
            return None if before is None else before + seconds

        return Absence(self.answers, more(self.absent), more(self.unaccounted), more(self.over))


# many jobs share it
_NO_ABSENCE = Absence()


@attrs.define(slots=True, eq=False)
class JobView:
    """A job of a batch executor. Times are by the clock of the process that follows it."""

    job_id: str
    #: The id in the spool; it differs from `job_id` for a job that was attached.
    spool_id: str
    #: 0 for a job that jpsi did not submit: the spool has nothing about it.
    attempt: int
    native_id: str
    #: The array and the index, for an array element; None for a single job.
    place: ArrayMember | None = None
    #: True if its statuses are published; before that, the job is not bound.
    is_followed: bool = False
    #: Polls that were begun before this time say nothing about the job: then it was followed, or its run
    #: ended.
    since: float = _NOT_YET
    #: When its submission was begun, if this process has seen the batch system accept it.
    accepted_at: float = _NEVER
    #: When jpsi last had the batch system change the job; no older snapshot shows the effect.
    changed_at: float = _NEVER
    #: True if its folder in the spool was read after it was followed first.
    is_read: bool = False
    #: True if another attempt may follow this one; None if that was not looked up yet.
    may_be_retried: bool | None = None
    markers: Sequence[Marker] = ()
    stop: Stop | None = None
    #: How often its cancel was repeated, and when it is due to be repeated next.
    cancel_repeats: int = 0
    cancel_due: float = _NOT_YET
    queued: Observation | None = None
    accounted: Observation | None = None
    #: True if the accounting, queried since the job left the queue, has no record of it; True if there is no
    #: accounting.
    is_unaccounted: bool = False
    has_no_accounting: bool = False
    #: Since when the accounting, each time that it answered, has had no record of it.
    unaccounted_since: float | None = None
    #: When the accounting was last queried about it.
    accounting_queried: float = _NEVER
    #: When the batch system, or the job's own markers, first showed it. An accounting record of an earlier
    #: end is about an older job with the same native id.
    first_seen: datetime | None = None
    #: True if a poll has reported a change of it since its status was last computed.
    needs_verdict: bool = True
    #: Since when the queue has not known it; and since when it is known to have ended.
    absent_since: float | None = None
    ended_since: float | None = None
    #: The number of complete snapshots in a row that have not mentioned it.
    absences: int = 0
    #: The absence that earlier processes saw, before the first snapshot of this process.
    earlier_absence: Absence = _NO_ABSENCE
    #: True if this process has taken in a snapshot about it.
    has_snapshot: bool = False
    #: True if the batch system denied this very job: the query was about it alone, or the answer named it.
    is_denied: bool = False
    #: When the batch system accepted it, according to an observation that showed its tag.
    submitted: datetime | None = None
    #: The observation of another job, to which the batch system has given the native id.
    foreign_job: Observation | None = None
    #: True if the last snapshot mentioned other elements of its array and not this one.
    is_dropped: bool = False

    @property
    def has_runner(self) -> bool:
        """True if jpsi submitted the job, so that it has a runner that leaves markers."""
        return self.attempt > 0

    @property
    def is_unverified(self) -> bool:
        """True if the job was attached, and the batch system has not shown such a job yet."""
        return not self.has_runner and self.queued is None and self.accounted is None

    @property
    def is_attachable(self) -> bool:
        """True if its native id is one of the batch system's, by all that is known."""
        return not self.is_unverified and not self.native_id.startswith(UNNAMED)

    @property
    def tag(self) -> str | None:
        """The tag that the job carries in the batch system; None for a job that jpsi did not submit."""
        if not self.has_runner:
            return None
        return tag(self.spool_id, self.attempt) if self.place is None else array_tag(self.place.array)

    @property
    def has_exit(self) -> bool:
        """True if its last run has left an exit marker."""
        return _has_exit(self.markers)

    @property
    def has_left_queue(self) -> bool:
        """True if the queue says that the job has ended, or does not know it."""
        return self.absent_since is not None or is_final(self.queued)

    @property
    def is_ending(self) -> bool:
        """True if it has left an exit marker while the queue still says that it runs."""
        return self.has_exit and self.queued is not None and not self.has_left_queue

    def ends_without_marker(self, now: float, seconds: float) -> bool:
        """Return True if jpsi cancelled it in the last `seconds`, and no marker will tell when it ends."""
        is_asked = self.stop is not None and now < self.changed_at + seconds
        return is_asked and not (self.has_exit or self.is_running or is_final(self.queued))

    @property
    def is_only_queued(self) -> bool:
        """True if nothing is known about the job except what the queue says, and the queue has it."""
        has_other_facts = bool(self.markers) or self.stop is not None or self.accounted is not None
        return not has_other_facts and self.queued is not None and not self.has_left_queue

    @property
    def is_waiting(self) -> bool:
        """True if all that is known is that it waits to start; its runner then leaves a marker."""
        return (
            self.has_runner
            and self.is_only_queued
            and self.queued is not None
            and self.queued.state is JobState.QUEUED
        )

    @property
    def is_running(self) -> bool:
        """True if the job is known to run, so that it may leave an exit marker at any moment."""
        if not self.has_runner or self.has_exit:
            return False
        if self.queued is not None and self.queued.state is JobState.ACTIVE:
            return True
        return _has(self.markers, "active")

    def needs_cancel(self, seen: Observation | None, now: float, delay: float, grace: float) -> bool:
        """Return True if its cancel had no effect and is to be repeated.

        A job that runs may have got the signal, and a second one could end it while it saves its data. Its
        marker of the signal is visible after the grace period; a job that was attached leaves none.

        Args:
            seen: what the queue says about the job.
            now: the current time.
            delay: the seconds that the first cancel has to take effect; each further one has twice as many.
            grace: the seconds in which a marker becomes visible.
        """
        is_alive = seen is not None and seen.exists and not seen.final and not self.has_exit
        # a job that got the signal may take its time
        if self.stop is None or not is_alive or _has(self.markers, "signalled"):
            return False
        if self.cancel_due == _NOT_YET:
            # an earlier process may have cancelled it first
            self.changed_at = now if self.changed_at == _NEVER else self.changed_at
            self.cancel_due = self.changed_at + delay
        is_running = seen is not None and seen.state is JobState.ACTIVE
        if is_running and (not self.has_runner or now < self.changed_at + grace):
            return False
        return now >= self.cancel_due and self.cancel_repeats < _MOST_REPEATS

    def postpone_cancel(self, now: float, delay: float) -> None:
        """Note that its cancel is repeated now; if that succeeds, the caller counts it."""
        self.cancel_due = now + delay * 2 ** (self.cancel_repeats + 1)

    def own_markers(self, markers: Iterable[Marker]) -> list[Marker]:
        """Return the markers that belong to this attempt."""
        return [marker for marker in markers if marker.attempt == self.attempt]

    def add_markers(self, markers: Iterable[Marker], now: float) -> bool:
        """Add markers; return True if one of them shows a new end."""
        # Other threads and processes may have read more of the folder than this scan did.
        known = {marker.name: marker for marker in (*self.markers, *markers)}
        old, self.markers = self.markers, list(known.values())
        if self.markers and self.first_seen is None:
            self.first_seen = min(marker.time for marker in self.markers)
        is_end = self.has_exit and (not _has_exit(old) or restart_count(self.markers) > restart_count(old))
        if is_end:
            # Observations from before that are outdated: only a new snapshot shows how the queue saw the
            # end.
            self.queued = self.accounted = self.absent_since = None
            self.absences, self.earlier_absence = 0, _NO_ABSENCE
            self.since = now
        return is_end

    def is_unchanged(self, seen: Observation | None) -> bool:
        """Return True if the queue says the same as before and nothing else is open, as for waiting jobs."""
        if seen is None or seen is not self.queued or seen.final:
            return False
        return self.absent_since is None and not self.needs_verdict and not self.markers

    def own_observation(self, seen: Observation | None) -> Observation | None:
        """Return an observation if it is about this job; None if it shows a foreign job or no job."""
        if seen is None or not seen.exists or self.owner_of(seen) is Owner.FOREIGN:
            return None
        return seen

    def owner_of(self, seen: Observation) -> Owner:
        """Return whose job an observation of this native id is about."""
        restarts = 0 if self.queued is None else self.queued.restarts or 0
        is_requeued = bool(restarts or seen.restarts) or restart_count(self.markers) > 0
        # once another job has the native id, a submit time that several jobs may share proves nothing
        submitted = self.submitted if self.foreign_job is None or seen.tag else None
        began = min((marker.time for marker in self.markers), default=None)
        return owner_of(seen, self.tag, submitted, began=began, is_requeued=is_requeued)

    def observe(self, seen: Observation | None, now: float) -> None:
        """Take in what the queue says about the native id; None means that it has no such job."""
        attributed = self._attributable(seen)
        if attributed is None:
            self.absent_since = now if self.absent_since is None else self.absent_since
            self.absences += 1
            self.is_denied = self.is_denied or (seen is not None and not seen.exists)
            return
        self.needs_verdict = self.needs_verdict or self.absent_since is not None or attributed != self.queued
        self.queued, self.absent_since = attributed, None
        self.absences, self.is_denied, self.foreign_job = 0, False, None
        self.accounted, self.is_unaccounted, self.unaccounted_since = None, False, None
        if not is_final(attributed):
            self.ended_since, self.earlier_absence = None, _NO_ABSENCE
            self.first_seen = self.first_seen or attributed.time

    def _attributable(self, seen: Observation | None) -> Observation | None:
        """Return the observation if it counts for this job; an end counts only if it is surely its own.

        Where the batch system shows no tags, the job's own markers prove as much: some run of it has begun.
        An observation without the tag, where tags are shown, may be about another job.
        """
        if seen is None or not seen.exists:
            return None
        owner = self.owner_of(seen)
        if owner is Owner.FOREIGN:
            self.foreign_job = self.foreign_job if self._is_older_job(seen) else seen
            return None
        if owner is Owner.OWN:
            if seen.tag:
                self.submitted = seen.submitted or self.submitted
        elif seen.tag is not None:
            # without the tag it counts as a sign of life, as long as nothing else shows an end
            return None if seen.final or self.has_exit else seen
        elif seen.final and not self.markers:
            return None
        return seen

    def _is_older_job(self, seen: Observation) -> bool:
        """Return True if an observation is about a job that had the native id before this one."""
        if seen.submitted is None or self.submitted is None:
            return False
        return seen.submitted < self.submitted

    def apply_accounting(self, found: Mapping[str, Observation] | None, now: float) -> None:
        """Take in what the accounting says about the job; None means that there is no accounting."""
        self.accounting_queried = now
        if self.absent_since is None:
            return
        self.has_no_accounting = found is None
        record = self._attributable(None if found is None else found.get(self.native_id))
        self.accounted = None if record is None or self._is_older_record(record) else record
        # a job that the accounting calls waiting or running may well live, though the queue has forgotten it
        self.is_unaccounted = self.accounted is None
        if self.is_unaccounted:
            self.unaccounted_since = now if self.unaccounted_since is None else self.unaccounted_since
        elif is_final(self.accounted):
            self.ended_since = now if self.ended_since is None else self.ended_since
        else:
            self._restart_accounting_wait()

    def _is_older_record(self, account: Observation) -> bool:
        """Return True if an accounting record is about the end of an older job with the same native id."""
        if account.time is None or self.first_seen is None:
            return False
        return account.time < self.first_seen - _SKEW

    def note_accounting_failure(self, now: float) -> None:
        """Note that the accounting did not answer; after an outage its records may come with a delay."""
        self.accounting_queried = now
        self._restart_accounting_wait()

    def _restart_accounting_wait(self) -> None:
        """Restart the wait for the accounting to say how the job ended."""
        self.unaccounted_since = None
        self.earlier_absence = attrs.evolve(self.earlier_absence, unaccounted=None)

    def change_native_id(self, native_id: str) -> None:
        """Use another native id from now on; everything that was known under the old one is dropped."""
        self.native_id = native_id
        self.queued = self.accounted = self.absent_since = self.ended_since = self.unaccounted_since = None
        self.absences, self.is_denied, self.foreign_job, self.submitted = 0, False, None, None
        self.earlier_absence = _NO_ABSENCE
        self.accounting_queried = _NEVER


def is_final(observation: Observation | None) -> bool:
    """Return True if the batch system says that a job has ended."""
    return observation is not None and observation.final


def _has(markers: Sequence[Marker], kind: str) -> bool:
    """Return True if the last run has left a marker of this kind."""
    return any(marker.kind == kind for marker in of_last_run(markers))


def _has_exit(markers: Sequence[Marker]) -> bool:
    # every waiting job has no marker
    return bool(markers) and has_exit_marker(of_last_run(markers))
