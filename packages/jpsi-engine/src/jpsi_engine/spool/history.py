"""Derives the status and the history of a job from its files in the spool alone; pure.

Any two processes that read the same files get the same result. What only the batch system knows is left open.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState
from jpsi.plugin.engine import timed, transitions
from jpsi_engine.spool.job_records import JobRecord
from jpsi_engine.spool.retries import reached_status, read_first_array
from jpsi_engine.spool.status_values import decode_status
from jpsi_engine.verdict import Facts, Marker, Stop, datetime_from_ns, judge, judge_process


@attrs.frozen(slots=True)
class JobHistory:
    """The record of a job, and the history and status that follow from it.

    Args:
        record: the job's record in the spool.
        requeue_exit_codes: the exit codes after which the batch system may requeue the job, as far as this
            machine knows; None for a process of this machine.
    """

    record: JobRecord
    requeue_exit_codes: Collection[int] | None
    #: The time when the client wrote the intent to submit the job.
    submitted: datetime = attrs.field(init=False)
    #: The time when it began to run, by its own marker or claim; None if it did not.
    started: datetime | None = attrs.field(init=False)
    #: The last status that is certain.
    status: JobStatus = attrs.field(init=False)

    @submitted.default
    def _parse_submitted(self) -> datetime:
        if self._reached is not None and self._reached["submitted"]:
            return _parse_time(self._reached["submitted"])
        return _parse_time(self.record.intent["time"])

    @property
    def _reached(self) -> Mapping[str, Any] | None:
        """The record of what the attempts before the next one, or before this one, have reached."""
        return self.record.retry or self.record.retried

    @property
    def first_array(self) -> str | None:
        """The array of the first attempt of a job that was, or is, submitted again; None for other jobs."""
        return read_first_array(self._reached)

    @started.default
    def _find_start(self) -> datetime | None:
        if self._reached is not None and self._reached["started"]:
            return _parse_time(self._reached["started"])
        started_ns = self.record.started_ns
        if self.requeue_exit_codes is not None and self.record.markers:
            times = [marker.time_ns for marker in self.record.markers if marker.kind == "active"]
            started_ns = min(times, default=None)
        return None if started_ns is None else max(datetime_from_ns(started_ns), self.submitted)

    @property
    def history(self) -> tuple[JobStatus, ...]:
        """Every status that is certain, the oldest first; the first is NEW."""
        time = self.submitted
        statuses = [JobStatus(JobState.NEW, time=time)]
        queued = JobStatus(JobState.QUEUED, time=time) if self._is_submitted else None
        for status in (queued, self._active, None if self._end is None else self.status):
            statuses += () if status is None else transitions(statuses[-1], status)
        # a job may have been cancelled before it was submitted
        return tuple(it for it in statuses if self._is_submitted or it.state is not JobState.QUEUED)

    @status.default
    def _last_status(self) -> JobStatus:
        # computed without the rest of the history, as the caller may need thousands
        last = self._end or self._active
        if last is None:
            state = JobState.QUEUED if self._is_submitted else JobState.NEW
            return JobStatus(state, time=self.submitted)
        earliest = self.started or self.submitted
        return last if last.time >= earliest else timed(attrs.evolve(last, time=earliest), "previous_state")

    @property
    def _is_submitted(self) -> bool:
        record = self.record
        # a damaged job may have been submitted
        is_unclear = bool(record.damage) and not record.is_revoked
        return record.has_native_id or record.has_run or is_unclear or self._reached is not None

    @property
    def _active(self) -> JobStatus | None:
        if self._reached is not None and self._reached["started"]:
            return reached_status(self._reached)
        if self.requeue_exit_codes is None:
            time = self.started
            return None if time is None else JobStatus(JobState.ACTIVE, time=time, evidence=Evidence.PROCESS)
        return self._judge_markers([marker for marker in self.record.markers if marker.kind == "active"])

    @property
    def _end(self) -> JobStatus | None:
        if self.record.final is not None:
            return decode_status(self.record.final)
        if self.record.may_be_retried:
            # a client decides whether another attempt follows
            return None
        if self.requeue_exit_codes is None:
            status = judge_process(self.record.markers, self._stop, None)
            return None if status is None else timed(status, "marker")
        if self.record.is_stage_out_pending:
            return None
        status = self._judge_markers(self.record.markers)
        return status if status is not None and status.final else None

    def _judge_markers(self, markers: Sequence[Marker]) -> JobStatus | None:
        if not markers:
            return None
        codes = self.requeue_exit_codes or ()
        facts = Facts(
            system="", now=self.submitted, markers=markers, requeue_exit_codes=codes, stop=self._stop
        )
        return judge(facts)

    @property
    def _stop(self) -> Stop | None:
        return None if self.record.stop is None else Stop.from_content(self.record.stop)

    @property
    def may_have_ended(self) -> bool:
        """True if its end was requested, or its program has left an exit code, and its end is not certain."""
        has_sign = self.record.stop is not None or self.program_ended is not None
        return has_sign and not self.status.state.final

    @property
    def program_ended(self) -> datetime | None:
        """The time when the program of the last run left its exit code; None if it has left none."""
        last = _last_exit(self.record.markers)
        return None if last is None else last.time

    def remark(self, *, is_gone: bool) -> str | None:
        """Return a sentence about a job that has not certainly ended, or is damaged; None if there is none.

        Args:
            is_gone: True if it was a process of this machine, which does not exist any more.
        """
        state = self.status.state
        if self.record.damage:
            return f"damaged: {'; '.join(self.record.damage)}; `jpsi doctor` says what to do"
        if state.final:
            return None
        if self._retry_remark is not None:
            return self._retry_remark
        return "its process has ended: jpsi ls --refresh finds out how" if is_gone else self._open_remark

    @property
    def _retry_remark(self) -> str | None:
        retry = self.record.retry
        if retry is None:
            return None
        why, time = str(retry["reason"]), datetime.fromisoformat(retry["not_before"]).astimezone()
        end = f"exit code {why}" if why.isdigit() else why
        return (
            f"attempt {retry['next']} follows, not before {time:%Y-%m-%d %H:%M:%S}, as the one before ended "
            f"with {end}; a jpsi that follows the job submits it, such as jpsi wait"
        )

    @property
    def _open_remark(self) -> str | None:
        state = self.status.state
        last_exit = _last_exit(self.record.markers) if self.record.markers else None
        code = None if last_exit is None else last_exit.code
        if code is not None and self.record.is_stage_out_pending:
            progress = f"; {self.record.stage_out_progress}" if self.record.stage_out_progress else ""
            return f"it ended with exit code {code}; its stage out runs, or waits to be started{progress}"
        if code is not None and self.requeue_exit_codes is not None:
            what = "the batch system was not queried yet whether it requeues it"
            return f"it ended with exit code {code}; {what}: jpsi ls --refresh"
        return self._stop_remark or (_UNCLEAR_REMARK if state is JobState.NEW else None)

    @property
    def _stop_remark(self) -> str | None:
        if self._stop is not None:
            # the client writes it before it asks the batch system, which may not have got the request
            remark, repeats = "its cancellation was requested", self._stop.repeats
            return f"{remark}, and {repeats} more times, as it still ran" if repeats else remark
        if not self.record.is_revoked:
            return None
        return (
            f"{_UNSENT_REMARK}: {self.record.unsent_reason}" if self.record.unsent_reason else _UNSENT_REMARK
        )


# The elements of an array share it.
@functools.lru_cache(maxsize=16)
def _parse_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is UTC else found.astimezone(UTC)


_UNCLEAR_REMARK = (
    "it is not known yet whether it was submitted: the submission is in progress, or was interrupted"
)
_UNSENT_REMARK = "it was not submitted, and cannot run"


def _last_exit(markers: Iterable[Marker]) -> Marker | None:
    """Return the marker with the exit code of the last run; None if that run has left none."""
    exits = [marker for marker in markers if marker.kind == "exit"]
    last = max((marker.restart for marker in markers), default=0)
    return next((marker for marker in exits if marker.restart == last), None)
