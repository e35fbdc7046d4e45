"""What is to be told about a job of a batch system, given everything that is known: pure, and never a guess.

Markers come from the job itself, observations from the batch system's queue and accounting. The final status
does not depend on the order in which they arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState, Observation, Reason
from jpsi.plugin.engine import timed
from jpsi_engine.verdict.exit_phases import SETUP_CODE
from jpsi_engine.verdict.marker_verdict import (
    SIGNAL_BASE,
    Stop,
    ended,
    exited,
    signal_of,
    signalled_before,
    unprepared,
)
from jpsi_engine.verdict.markers import Marker
from jpsi_engine.verdict.staging_outcome import with_staging

_NEVER = datetime.min.replace(tzinfo=UTC)
# What the exit code says as well; any other reason is the batch system's to give.
_OF_THE_CODE = frozenset({Reason.EXIT_CODE, Reason.SIGNAL})


@attrs.frozen(slots=True, kw_only=True)
class Facts:
    """What is known about one attempt of a job."""

    #: The system's name, which goes before its own words in metadata.
    system: str
    #: The time of what has no time of its own.
    now: datetime
    #: Whether the job is one of jpsi's, which leaves markers; not so a foreign one that was attached to.
    has_runner: bool = True
    #: Everything that any run of the attempt left.
    markers: Sequence[Marker] = ()
    #: Exit codes by which a job asks to be run again.
    requeue_exit_codes: Collection[int] = ()
    #: Set if jpsi told the job to end.
    stop: Stop | None = None
    #: What the queue last said, unless that was before an exit marker came.
    queued: Observation | None = None
    #: What the accounting said, once the job was not in the queue any more.
    accounted: Observation | None = None
    #: Whether the last answer of the queue did not mention the job.
    unmentioned: bool = False
    #: Whether that is believed, as the answer before it did not, either.
    absent: bool = False
    #: Whether it said so of the job by itself, and did not only leave it out.
    denied: bool = False
    #: What the batch system last said about another job, to which it has given the native id.
    stranger: Observation | None = None
    #: Whether the accounting cannot tell more: there is none, or it does not know the job in good time.
    unaccounted: bool = False
    #: Whether a marker that was left would have shown by now.
    settled: bool = False
    #: Whether everything that was waited for has had its time.
    overdue: bool = False
    #: Whether the queue tells of other elements of its array and not of this one, and nothing else does.
    dropped: bool = False
    #: How many seconds that takes.
    patience: float = 0.0

    @property
    def last_run(self) -> list[Marker]:
        """The markers of the last run; those of earlier ones mean nothing any more."""
        restart = max((marker.restart for marker in self.markers), default=0)
        return [marker for marker in self.markers if marker.restart == restart]

    @property
    def exit_marker(self) -> Marker | None:
        """How the last run ended, as it said itself."""
        exits = [marker for marker in self.last_run if marker.kind == "exit"]
        return min(exits, key=lambda marker: (marker.time_ns, marker.name), default=None)

    @property
    def end(self) -> Observation | None:
        """What the batch system says of the job's end; None while it has the job."""
        for observation in (self.queued, self.accounted):
            if observation is not None and observation.final:
                return observation
        return None

    @property
    def is_present(self) -> bool:
        """Whether the queue has the job, in whatever state that is not an end."""
        return self.queued is not None and not self.unmentioned and not self.queued.final


def settles(
    markers: Iterable[Marker], requeue_exit_codes: Collection[int] = (), stop: Stop | None = None
) -> bool:
    """Whether the markers of an attempt say all that there is to know about how it ended."""
    facts = Facts(
        system="", now=_NEVER, markers=list(markers), requeue_exit_codes=requeue_exit_codes, stop=stop
    )
    return facts.exit_marker is not None and not _is_provisional(facts, facts.exit_marker)


def judge(facts: Facts) -> JobStatus | None:
    """The status that follows from the facts, or None while nothing is known.

    A final one is the last word.
    """
    status = _judged(facts)
    if status is not None and status.final and facts.exit_marker is not None:
        status = with_staging(status, facts.exit_marker.detail)
    if status is not None:
        status = timed(status, _time_source(facts, status.time))
    if status is None or not any(marker.restart for marker in facts.markers):
        return status
    return attrs.evolve(status, metadata={**status.metadata, "requeued": True})


def _time_source(facts: Facts, time: datetime) -> str:
    """Return who told a time that was taken from one of the facts."""
    if time is facts.now:
        return "observation"
    for told, source in ((facts.queued, "queue"), (facts.accounted, "accounting")):
        if told is not None and told.time is time:
            return source
    return "marker"


def _judged(facts: Facts) -> JobStatus | None:
    exit_marker = facts.exit_marker
    if exit_marker is not None:
        if not _is_provisional(facts, exit_marker):
            return ended(exit_marker)
        return _ended_provisionally(facts, exit_marker) or _not_ended(facts)
    if facts.end is not None:
        return _ended_without_marker(facts, facts.end) or _not_ended(facts)
    if facts.absent and facts.unaccounted and (facts.overdue or (facts.denied and not facts.has_runner)):
        return _lost(facts)
    if facts.dropped and facts.stop is not None and not facts.markers:
        # an element that was told to end before it had begun, which some systems forget at once
        return _cancelled(facts.now, None, Evidence.ABSENCE)
    return _not_ended(facts)


def _is_provisional(facts: Facts, exit_marker: Marker) -> bool:
    """Whether the batch system may know better: it ended the job, or will run it again."""
    code = exit_marker.code or 0
    return (
        signalled_before(exit_marker, facts.last_run)
        or _was_asked_for(facts.stop)
        or code > SIGNAL_BASE
        or code in facts.requeue_exit_codes
    )


def _was_asked_for(stop: Stop | None) -> bool:
    """Whether jpsi may have told the job to end before it did.

    The signal may reach the job first, which ends with whatever code it likes, and its runner too late. No
    clocks are compared, as those of clients, nodes and file servers differ.
    """
    return stop is not None and not stop.is_late


def _ended_provisionally(facts: Facts, exit_marker: Marker) -> JobStatus | None:
    own = ended(exit_marker)
    end = facts.end
    if end is None and (facts.is_present or not (facts.absent and facts.unaccounted)):
        return None
    if end is not None and _is_cause(end):
        # the code is the job's own, the reason the system's
        return _told(facts, end, exit_marker.time, exit_marker.code)
    if facts.stop is not None and signalled_before(exit_marker, facts.last_run):
        return _cancelled(exit_marker.time, exit_marker.code, Evidence.MARKER)
    return own


def _is_cause(end: Observation) -> bool:
    """Whether the system says more of an end than an exit code does."""
    if end.state is JobState.CANCELED:
        return True
    return end.state is JobState.FAILED and end.reason is not None and end.reason not in _OF_THE_CODE


def _ended_without_marker(facts: Facts, end: Observation) -> JobStatus | None:
    if facts.has_runner and end.ran is not False and not facts.settled:
        return None  # what it left may show any moment
    if facts.stop is not None and not _is_cause(end) and facts.has_runner:
        # some systems call a job done that was ended
        return _cancelled(end.time or facts.now, end.exit_code, _evidence(facts, end))
    return _told(facts, end, None, None)


def _told(facts: Facts, end: Observation, time: datetime | None, code: int | None) -> JobStatus:
    """The final status that the batch system tells, with what the job itself said of it."""
    evidence = _evidence(facts, end)
    metadata = _metadata(facts, end)
    when = end.time or time or facts.now
    code = end.exit_code if code is None else code
    if end.state is JobState.CANCELED:
        status = _cancelled(when, code, evidence)
        return attrs.evolve(
            status,
            message=end.message or status.message,
            reason=end.reason or status.reason,
            metadata=metadata,
        )
    if end.state is JobState.FAILED and end.reason is not None and end.reason not in _OF_THE_CODE:
        message = end.message or f"the batch system ended the job: {end.word}"
        return JobStatus(
            JobState.FAILED,
            time=when,
            exit_code=code,
            message=message,
            reason=end.reason,
            evidence=evidence,
            metadata=_with_signal(metadata, code),
        )
    if code is None:
        return _without_code(facts, end, when)
    if end.state is JobState.FAILED and code == 0:
        message = end.message or f"the batch system calls the job failed: {end.word}"
        return JobStatus(
            JobState.FAILED,
            time=when,
            message=message,
            reason=end.reason,
            evidence=evidence,
            metadata=metadata,
        )
    if facts.has_runner:
        metadata = {**metadata, "marker": "missing"}
        if code == SETUP_CODE:
            return unprepared(when, evidence, metadata)
    return exited(when, code, evidence, metadata)


def _without_code(facts: Facts, end: Observation, when: datetime) -> JobStatus:
    """The status of a job whose exit code nobody tells."""
    evidence, metadata = _evidence(facts, end), _metadata(facts, end)
    if end.state is JobState.COMPLETED and not facts.has_runner:
        return JobStatus(JobState.COMPLETED, time=when, evidence=evidence, metadata=metadata)
    message = end.message or f"the job ended ({end.word}) and left no exit code that could be found"
    reason = Reason.LOST if end.state is JobState.COMPLETED else end.reason or Reason.LOST
    return JobStatus(
        JobState.FAILED, time=when, message=message, reason=reason, evidence=evidence, metadata=metadata
    )


def _lost(facts: Facts) -> JobStatus:
    has_run = any(marker.kind == "active" for marker in facts.markers)
    if facts.stranger is not None:
        return _supplanted(facts, facts.stranger)
    if facts.stop is not None and not has_run:
        return _cancelled(facts.now, None, Evidence.ABSENCE)
    if facts.has_runner or has_run:
        message = "the batch system does not know the job any more, and it left no exit code"
        reason = Reason.LOST
    else:
        return unverified(facts.now, "the batch system does not know the native id that was attached to")
    return JobStatus(
        JobState.FAILED, time=facts.now, message=message, reason=reason, evidence=Evidence.ABSENCE
    )


def unverified(time: datetime, message: str) -> JobStatus:
    """Return the status of a job that was attached to and that the batch system does not have."""
    return JobStatus(
        JobState.FAILED,
        time=time,
        message=message,
        reason=Reason.ATTACH_UNVERIFIED,
        evidence=Evidence.ABSENCE,
    )


def _supplanted(facts: Facts, stranger: Observation) -> JobStatus:
    """Return the status of a job that the batch system has lost, whose native id another job has now."""
    when = "" if stranger.submitted is None else f", submitted at {stranger.submitted.isoformat()}"
    told = {
        "state": stranger.word,
        "tag": stranger.tag or None,
        "submitted": None if stranger.submitted is None else stranger.submitted.isoformat(),
    }
    return JobStatus(
        JobState.FAILED,
        time=facts.now,
        message=f"{facts.system} has lost the job: its native id is now that of another job{when}; "
        "the job left no exit code",
        reason=Reason.LOST,
        evidence=Evidence.ABSENCE,
        metadata={f"{facts.system}.stranger.{name}": value for name, value in told.items() if value},
    )


def _not_ended(facts: Facts) -> JobStatus | None:
    status = begun(facts.markers)
    if status is not None:
        return status
    queued = facts.queued
    if facts.unmentioned:
        # of one that was attached to and never mentioned nothing is told: it may not be there
        return None if facts.has_runner or queued is None else _missed(facts, queued)
    if queued is None or queued.state not in {JobState.QUEUED, JobState.ACTIVE}:
        return None
    return JobStatus(
        queued.state,
        time=queued.time or facts.now,
        message=queued.message,
        evidence=Evidence.QUEUE,
        metadata=_metadata(facts, queued),
    )


def begun(markers: Iterable[Marker]) -> JobStatus | None:
    """That a job runs, if it has told so, whatever came after that."""
    active = [marker for marker in markers if marker.kind == "active"]
    first = min(active, key=lambda marker: marker.time_ns, default=None)
    if first is None:
        return None
    return timed(JobStatus(JobState.ACTIVE, time=first.time, evidence=Evidence.MARKER), "marker")


def _missed(facts: Facts, queued: Observation) -> JobStatus:
    """Return the status of a job that was attached to and that the batch system does not mention any more."""
    return JobStatus(
        JobState.ACTIVE if queued.state is JobState.ACTIVE else JobState.QUEUED,
        time=facts.now,
        message=f"{facts.system} does not mention a job of this native id; "
        f"if that stays so for {facts.patience:g} s, it is believed",
        evidence=Evidence.QUEUE,
    )


def _cancelled(time: datetime, code: int | None, evidence: Evidence) -> JobStatus:
    return JobStatus(
        JobState.CANCELED,
        time=time,
        exit_code=code,
        message="the job was cancelled",
        reason=Reason.CANCELLED,
        evidence=evidence,
    )


def _evidence(facts: Facts, end: Observation) -> Evidence:
    return Evidence.QUEUE if end is facts.queued else Evidence.ACCOUNTING


def _metadata(facts: Facts, observation: Observation) -> dict[str, Any]:
    return {f"{facts.system}.state": observation.word, **observation.details}


def _with_signal(metadata: dict[str, Any], code: int | None) -> dict[str, Any]:
    number = signal_of(code)
    return metadata if number is None else {**metadata, "signal": number}
