"""Decides the status of a job of a batch system from all that is known about it; pure, and never a guess.

Markers come from the job itself, observations from the batch system's queue and accounting. The final status
does not depend on the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState, Reason
from jpsi.plugin.engine import timed
from jpsi_engine.verdict.exit_phases import SETUP_CODE
from jpsi_engine.verdict.marker_verdict import (
    SIGNAL_BASE,
    Stop,
    add_staging_outcome,
    add_usage,
    cancelled_status,
    failed_status,
    first_exit_marker,
    setup_failed_status,
    signal_number,
    status_of_exit_code,
    status_of_exit_marker,
    was_signalled_before,
)
from jpsi_engine.verdict.markers import Marker, of_last_run

if TYPE_CHECKING:
    from jpsi.plugin import Observation

_NEVER = datetime.min.replace(tzinfo=UTC)
# Reasons that only repeat the exit code; any other reason is known to the batch system alone.
_EXIT_CODE_REASONS = frozenset({Reason.EXIT_CODE, Reason.SIGNAL})


@attrs.frozen(slots=True, kw_only=True)
class Facts:
    """The evidence about one attempt of a job."""

    #: The batch system's name, the prefix of its own words in metadata.
    system: str
    #: The time of this decision, for events without a time of their own.
    now: datetime
    #: True for a job of jpsi, whose runner leaves markers; False for a foreign job that was attached to.
    has_runner: bool = True
    #: The markers of all runs of the attempt.
    markers: Sequence[Marker] = ()
    #: The exit codes after which the batch system may requeue the job.
    requeue_exit_codes: Collection[int] = ()
    #: The record of jpsi's request to end the job; None if there was none.
    stop: Stop | None = None
    #: The last observation from the queue, unless it is older than the exit marker.
    queued: Observation | None = None
    #: The observation from accounting, after the job has left the queue.
    accounted: Observation | None = None
    #: True if the last snapshot of the queue did not mention the job.
    unmentioned: bool = False
    #: True if that is believed, as the snapshot before it did not mention the job either.
    absent: bool = False
    #: True if the batch system denied this very job, and did not only leave it out.
    denied: bool = False
    #: The last observation of another job, to which the batch system has given the native id.
    foreign_job: Observation | None = None
    #: True if accounting cannot add anything: there is none, or it did not know the job in good time.
    unaccounted: bool = False
    #: True if so much time has passed that a marker would be visible by now.
    settled: bool = False
    #: True if the job has been absent for `patience` seconds, so that no more evidence is awaited.
    overdue: bool = False
    #: True if the queue has other elements of its array and not this one, and no other source has it.
    dropped: bool = False
    #: True if the batch system calls it completed, and it has left nothing that a run leaves.
    is_traceless: bool = False
    #: The seconds of absence after which `overdue` is True.
    timeout_seconds: float = 0.0

    @property
    def exit_marker(self) -> Marker | None:
        """The exit marker of the last run, the earliest if there are several; None if it left none."""
        return first_exit_marker(of_last_run(self.markers))

    @property
    def end(self) -> Observation | None:
        """The batch system's observation of the job's end; None while the job has not ended there."""
        known = (self.queued, self.accounted)
        return next((it for it in known if it is not None and it.final), None)

    @property
    def is_present(self) -> bool:
        """True if the queue has the job in a state that is not final."""
        return self.queued is not None and not self.unmentioned and not self.queued.final


def is_conclusive(
    markers: Iterable[Marker], requeue_exit_codes: Collection[int] = (), stop: Stop | None = None
) -> bool:
    """Return True if the markers of an attempt alone decide its final status."""
    facts = Facts(
        system="", now=_NEVER, markers=list(markers), requeue_exit_codes=requeue_exit_codes, stop=stop
    )
    return facts.exit_marker is not None and not _is_provisional(facts, facts.exit_marker)


def judge(facts: Facts) -> JobStatus | None:
    """Return the status that follows from the facts, or None while nothing is known.

    A final status never changes with later facts.
    """
    status = _decide_status(facts)
    if status is not None and status.final and facts.exit_marker is not None:
        status = add_usage(add_staging_outcome(status, facts.exit_marker.detail), facts.exit_marker)
    unmet = "" if facts.stop is None else facts.stop.unmet
    if status is not None and status.state is JobState.CANCELED and unmet:
        status = attrs.evolve(status, message=unmet, reason=Reason.DEPENDENCY)
    if status is not None:
        status = timed(status, _time_source(facts, status.time))
    if status is None or not any(marker.restart for marker in facts.markers):
        return status
    return attrs.evolve(status, metadata={**status.metadata, "requeued": True})


def _time_source(facts: Facts, time: datetime) -> str:
    """Return the source of a time that was taken from one of the facts."""
    if time is facts.now:
        return "observation"
    for observation, source in ((facts.queued, "queue"), (facts.accounted, "accounting")):
        if observation is not None and observation.time is time:
            return source
    return "marker"


def _decide_status(facts: Facts) -> JobStatus | None:
    exit_marker = facts.exit_marker
    if exit_marker is not None:
        if not _is_provisional(facts, exit_marker):
            return status_of_exit_marker(exit_marker)
        return _status_of_provisional_exit(facts, exit_marker) or _unfinished_status(facts)
    if facts.end is not None:
        return _status_without_marker(facts, facts.end) or _unfinished_status(facts)
    if facts.absent and facts.unaccounted and (facts.overdue or (facts.denied and not facts.has_runner)):
        return _lost_status(facts)
    if facts.dropped and facts.stop is not None and not facts.markers:
        # a cancelled element that had not begun, which some batch systems forget at once
        return cancelled_status(facts.now, None, Evidence.ABSENCE)
    return _unfinished_status(facts)


def _is_provisional(facts: Facts, exit_marker: Marker) -> bool:
    """Return True if the batch system may know better: it ended the job, or will requeue it."""
    code = exit_marker.code or 0
    return (
        was_signalled_before(exit_marker, of_last_run(facts.markers))
        or _may_be_requested(facts.stop)
        or code > SIGNAL_BASE
        or code in facts.requeue_exit_codes
    )


def _may_be_requested(stop: Stop | None) -> bool:
    """Return True if the job may have ended because jpsi cancelled it.

    The signal may reach the job before its runner; the job then ends with any code. The function compares no
    clocks, as those of clients, nodes and file servers differ.
    """
    return stop is not None and not stop.is_late


def _status_of_provisional_exit(facts: Facts, exit_marker: Marker) -> JobStatus | None:
    is_signalled = was_signalled_before(exit_marker, of_last_run(facts.markers))
    if is_signalled:
        # The system ended the job, by TERM and then KILL, and the runner cannot tell that KILL from the
        # kernel's: a process that was killed for its memory before that was not why.
        exit_marker = attrs.evolve(exit_marker, has_memory_kill=False)
    end = facts.end
    if end is None and (facts.is_present or not (facts.absent and facts.unaccounted)):
        return None
    if end is not None and _explains_end(end):
        # the exit code comes from the job, the reason from the batch system
        return _reported_status(facts, end, exit_marker.time, exit_marker.code)
    if facts.stop is not None and is_signalled:
        return cancelled_status(exit_marker.time, exit_marker.code, Evidence.MARKER)
    return status_of_exit_marker(exit_marker)


def _explains_end(end: Observation) -> bool:
    """Return True if the batch system knows more about an end than the exit code does."""
    if end.state is JobState.CANCELED:
        return True
    return end.state is JobState.FAILED and end.reason is not None and end.reason not in _EXIT_CODE_REASONS


def _status_without_marker(facts: Facts, end: Observation) -> JobStatus | None:
    if facts.has_runner and not _never_ran(facts, end) and not facts.settled:
        return None  # what it left may show any moment
    if facts.stop is not None and not _explains_end(end) and facts.has_runner:
        # some batch systems report a cancelled job as completed
        return cancelled_status(end.time or facts.now, end.exit_code, _source_of_end(facts, end))
    if facts.is_traceless:
        message = f"{facts.system} calls the job completed, but the job left no trace that it ran"
        evidence, metadata = _source_of_end(facts, end), _metadata(facts, end)
        return failed_status(end.time or facts.now, None, Reason.LOST, message, evidence, metadata)
    return _reported_status(facts, end, None, None)


def _never_ran(facts: Facts, end: Observation) -> bool:
    """Return True if a job surely did not begin before it ended.

    Some batch systems do not say whether a cancelled one did. If it waited when jpsi cancelled it, it did
    not; had it begun in between, there would be a marker, or the batch system would know where it ran.
    """
    if end.ran is not None or facts.markers or facts.stop is None:
        return end.ran is False
    return facts.stop.was_waiting and end.state is JobState.CANCELED


def _reported_status(facts: Facts, end: Observation, time: datetime | None, code: int | None) -> JobStatus:
    """Return the final status that the batch system reports, with the job's own exit code and time."""
    evidence, metadata = _source_of_end(facts, end), _metadata(facts, end)
    when = end.time or time or facts.now
    code = end.exit_code if code is None else code
    if end.state is JobState.CANCELED:
        status = cancelled_status(when, code, evidence)
        return attrs.evolve(
            status,
            message=end.message or status.message,
            reason=end.reason or status.reason,
            metadata=metadata,
        )
    if _explains_end(end):
        message = end.message or f"the batch system ended the job: {end.native_state}"
        number = signal_number(code)
        signalled = metadata if number is None else {**metadata, "signal": number}
        return failed_status(when, code, end.reason, message, evidence, signalled)
    if code is None:
        return _status_without_code(facts, end, when)
    if end.state is JobState.FAILED and code == 0:
        message = end.message or f"the batch system reports the job as failed: {end.native_state}"
        return failed_status(when, None, end.reason, message, evidence, metadata)
    if facts.has_runner:
        metadata = {**metadata, "marker": "missing"}
        if code == SETUP_CODE:
            return setup_failed_status(when, evidence, metadata)
    return status_of_exit_code(when, code, evidence, metadata)


def _status_without_code(facts: Facts, end: Observation, when: datetime) -> JobStatus:
    """Return the final status of a job whose exit code neither the job nor the batch system reports."""
    evidence, metadata = _source_of_end(facts, end), _metadata(facts, end)
    if end.state is JobState.COMPLETED and not facts.has_runner:
        return JobStatus(JobState.COMPLETED, time=when, evidence=evidence, metadata=metadata)
    message = end.message or f"the job ended ({end.native_state}), and no exit code was reported"
    reason = Reason.LOST if end.state is JobState.COMPLETED else end.reason or Reason.LOST
    return failed_status(when, None, reason, message, evidence, metadata)


def _lost_status(facts: Facts) -> JobStatus:
    has_run = any(marker.kind == "active" for marker in facts.markers)
    if facts.foreign_job is not None:
        return _lost_to_reused_id(facts, facts.foreign_job)
    if facts.stop is not None and not has_run:
        return cancelled_status(facts.now, None, Evidence.ABSENCE)
    if not facts.has_runner and not has_run:
        message = "the batch system does not know the native id that was attached to"
        return unverified_status(facts.now, message)
    message = "the batch system does not know the job any more, and the job left no exit code"
    return failed_status(facts.now, None, Reason.LOST, message, Evidence.ABSENCE)


def unverified_status(time: datetime, message: str) -> JobStatus:
    """Return the status of a job that was attached to and that the batch system does not have."""
    return failed_status(time, None, Reason.ATTACH_UNVERIFIED, message, Evidence.ABSENCE)


def _lost_to_reused_id(facts: Facts, foreign_job: Observation) -> JobStatus:
    """Return the status of a job that the batch system has lost, and whose native id another job now has."""
    submitted = None if foreign_job.submitted is None else foreign_job.submitted.isoformat()
    when = "" if submitted is None else f", submitted at {submitted}"
    details = {"state": foreign_job.native_state, "tag": foreign_job.tag or None, "submitted": submitted}
    message = (
        f"{facts.system} has lost the job: its native id now belongs to another job{when}; "
        "the job left no exit code"
    )
    metadata = {f"{facts.system}.foreign_job.{name}": value for name, value in details.items() if value}
    return failed_status(facts.now, None, Reason.LOST, message, Evidence.ABSENCE, metadata)


def _unfinished_status(facts: Facts) -> JobStatus | None:
    status = active_status(facts.markers)
    if status is not None:
        return status
    queued = facts.queued
    if facts.unmentioned:
        # an attached job that was never in the queue has no status: it may not exist
        return None if facts.has_runner or queued is None else _missing_status(facts, queued)
    if queued is None or queued.state not in {JobState.QUEUED, JobState.ACTIVE}:
        return None
    return JobStatus(
        queued.state,
        time=queued.time or facts.now,
        message=queued.message,
        evidence=Evidence.QUEUE,
        metadata=_metadata(facts, queued),
    )


def active_status(markers: Iterable[Marker]) -> JobStatus | None:
    """Return the ACTIVE status if the job has left an active marker, whatever came later; None if not."""
    active = [marker for marker in markers if marker.kind == "active"]
    first = min(active, key=lambda marker: marker.time_ns, default=None)
    if first is None:
        return None
    return timed(JobStatus(JobState.ACTIVE, time=first.time, evidence=Evidence.MARKER), "marker")


def _missing_status(facts: Facts, queued: Observation) -> JobStatus:
    """Return the status of an attached job that the last snapshot of the queue does not mention."""
    return JobStatus(
        JobState.ACTIVE if queued.state is JobState.ACTIVE else JobState.QUEUED,
        time=facts.now,
        message=f"{facts.system} does not list a job with this native id; "
        f"if it does not list one for {facts.timeout_seconds:g} s, jpsi takes the job for lost",
        evidence=Evidence.QUEUE,
    )


def _source_of_end(facts: Facts, end: Observation) -> Evidence:
    return Evidence.QUEUE if end is facts.queued else Evidence.ACCOUNTING


def _metadata(facts: Facts, observation: Observation) -> dict[str, Any]:
    return {f"{facts.system}.state": observation.native_state, **observation.details}
