"""Decides the status of a job from its markers and its process; pure, and never a guess.

The status does not depend on the order in which the facts arrived.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState, Reason
from jpsi_engine.verdict import exit_phases
from jpsi_engine.verdict.exit_phases import ALSO, CANCEL, CLEANUP, SETUP_CODE, STAGE_IN, STAGE_OUT, TIMEOUT
from jpsi_engine.verdict.markers import Marker

# POSIX XCU 2.8.2: a shell reports a command that signal n ended by a code above 128; all shells add n.
SIGNAL_BASE = 128
_NOTHING: Mapping[str, Any] = {}
_FAILED = "failed"

# A runner exits within a minute after it has left its exit marker. A signal marker that is later than that
# was left before it: the clock was set back meanwhile.
_EXIT_GRACE_NS = 60_000_000_000


@attrs.frozen(slots=True)
class Stop:
    """The record of jpsi's request to end a job, by a cancel or at the end of its duration."""

    #: CANCEL or TIMEOUT.
    why: str
    time: datetime
    #: True if the job had left its exit marker already by then.
    is_late: bool = False
    #: How often jpsi repeated the cancel, as the job still ran.
    repeats: int = 0
    #: Why a dependency of the job cannot be met, if that is why it was to end.
    unmet: str = ""
    #: True if the batch system showed the job waiting right before jpsi cancelled it.
    was_waiting: bool = False

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Stop:
        """Return the record that was written to the spool as `content`.

        Raises:
            KeyError, TypeError, ValueError: the content is not such a record.
        """
        why = TIMEOUT if content.get("why") == TIMEOUT else CANCEL
        time, repeats = datetime.fromisoformat(content["time"]), int(content.get("repeats", 0))
        is_late, unmet = content.get("late") is True, str(content.get("unmet", ""))
        waiting = content.get("waiting") is True
        return cls(why, time, is_late=is_late, repeats=repeats, unmet=unmet, was_waiting=waiting)

    @property
    def content(self) -> dict[str, Any]:
        """The record, as it is written to the spool."""
        facts = ("late", self.is_late), ("repeats", self.repeats), ("unmet", self.unmet)
        further = {name: it for name, it in (*facts, ("waiting", self.was_waiting)) if it}
        return {"why": self.why, "time": self.time.isoformat(), **further}


@attrs.frozen(slots=True)
class ProcessEnd:
    """The end of the process that ran the job."""

    time: datetime
    #: The status that wait(2) reports; None if it is unknown.
    wait_status: int | None = None


def judge_process(
    markers: Iterable[Marker], stop: Stop | None, process_end: ProcessEnd | None, *, has_runner: bool = True
) -> JobStatus | None:
    """Return the final status that follows from the facts, or None while none is certain.

    Args:
        markers: the markers of the job's last run.
        stop: set if jpsi requested the end of the job.
        process_end: set once the job's process has ended.
        has_runner: True if that process is jpsi's runner; a process that was only attached to leaves no
            markers, and only its end is known.
    """
    markers = list(markers)
    exit_marker = first_exit_marker(markers)
    if stop is not None:
        # A job whose end jpsi requested is over when its processes are gone, no matter how it exited.
        if process_end is None:
            return None
        if exit_marker is None:
            return _stopped_status(stop, None, process_end)
        if was_signalled_before(exit_marker, markers):
            stopped = _stopped_status(stop, exit_marker, process_end)
            return add_usage(add_staging_outcome(stopped, exit_marker.detail), exit_marker)
    if exit_marker is not None:
        return status_of_exit_marker(exit_marker)
    if process_end is None:
        return None
    return _status_of_process(process_end, has_runner=has_runner)


def first_exit_marker(markers: Iterable[Marker]) -> Marker | None:
    """Return the exit marker of a run, the earliest if there are several; None if it left none."""
    exits = [marker for marker in markers if marker.kind == "exit"]
    return min(exits, key=lambda marker: (marker.time_ns, marker.name), default=None)


def has_exit_marker(markers: Iterable[Marker]) -> bool:
    """Return True if there is an exit marker: it decides the status unless jpsi requested the end."""
    return any(marker.kind == "exit" for marker in markers)


def was_signalled_before(exit_marker: Marker, markers: Iterable[Marker]) -> bool:
    """Return True if the runner got a signal to end before the run ended."""
    latest = exit_marker.time_ns + _EXIT_GRACE_NS
    return any(
        marker.kind == "signalled" and not exit_marker.time_ns < marker.time_ns <= latest
        for marker in markers
    )


def _stopped_status(stop: Stop, exit_marker: Marker | None, process_end: ProcessEnd) -> JobStatus:
    if exit_marker is None:
        time, code, evidence = process_end.time, _exit_code(process_end.wait_status), Evidence.PROCESS
    else:
        time, code, evidence = exit_marker.time, exit_marker.code, Evidence.MARKER
    if stop.why == TIMEOUT:
        message = "the job used up its duration and was ended"
        return failed_status(time, code, Reason.TIMEOUT, message, evidence)
    return cancelled_status(time, code, evidence)


def cancelled_status(time: datetime, code: int | None, evidence: Evidence) -> JobStatus:
    """Return the final status of a job that was cancelled."""
    return JobStatus(
        JobState.CANCELED,
        time=time,
        exit_code=code,
        message="the job was cancelled",
        reason=Reason.CANCELLED,
        evidence=evidence,
    )


def never_ran_status() -> JobStatus:
    """Return the status of a job that was cancelled before it had begun."""
    return cancelled_status(datetime.now(UTC), None, Evidence.ABSENCE)


def status_of_exit_marker(marker: Marker) -> JobStatus:
    """Return the final status that an exit marker means."""
    status = add_staging_outcome(_status_of_phase(marker, parse_exit_phase(marker.detail)), marker.detail)
    return add_usage(status, marker)


def _status_of_phase(marker: Marker, phase: str) -> JobStatus:
    code = marker.code or 0
    if phase in _SETUP_FAILURES:
        reason, message = _SETUP_FAILURES[phase]
        message = _OTHER_MESSAGES.get((phase, code), message)
        return failed_status(marker.time, code, reason, message, Evidence.MARKER, {"phase": phase})
    metadata = {"post_launch": _FAILED} if phase == exit_phases.POST_LAUNCH else _NOTHING
    status = status_of_exit_code(marker.time, code, Evidence.MARKER, metadata)
    if not marker.has_memory_kill:
        return status
    message = f"{status.message}: the kernel killed a process of the job, as it had used up its memory"
    return attrs.evolve(status, reason=Reason.OUT_OF_MEMORY, message=message)


_OTHER_MESSAGES = {
    (exit_phases.EXECUTABLE, exit_phases.NOT_EXECUTABLE_CODE): "the executable may not be executed",
    (exit_phases.CONTAINER, exit_phases.SETUP_CODE): (
        "the container cannot show the job's directory, whose path has a quotation mark, "
        "so that nothing was launched"
    ),
}
_SETUP_FAILURES = {
    exit_phases.SHELL: (
        Reason.SETUP,
        "the configured shell does not exist, or may not be executed, where the job ran",
    ),
    exit_phases.DIRECTORY: (Reason.SETUP, "the job's directory could not be entered"),
    STAGE_IN: (Reason.STAGING, "stage_in failed, so that nothing was launched"),
    exit_phases.STDIN: (Reason.SETUP, "the file for standard input could not be opened"),
    exit_phases.STDOUT: (Reason.SETUP, "the file for standard output could not be opened"),
    exit_phases.STDERR: (Reason.SETUP, "the file for standard error could not be opened"),
    exit_phases.NODES: (Reason.SETUP, "the names of the job's nodes could not be determined"),
    exit_phases.ENVIRONMENT: (Reason.SETUP, "awk(1), which sets the job's environment, did not run"),
    exit_phases.EXECUTABLE: (Reason.EXECUTABLE, "the executable was not found"),
    exit_phases.CONTAINER: (
        Reason.SETUP,
        "no program that runs the job's container is on its PATH, so that nothing was launched",
    ),
    exit_phases.ARGUMENTS: (
        Reason.EXECUTABLE,
        "the executable could not be started: its arguments and environment exceed the kernel's limit",
    ),
    exit_phases.ENVIRONMENT_SETUP: (
        Reason.SETUP,
        "the environment could not be set up, so that nothing was launched",
    ),
    exit_phases.PROLOGUE: (Reason.PRE_LAUNCH, "the configured prologue failed, so that nothing was launched"),
    exit_phases.PRE_LAUNCH: (Reason.PRE_LAUNCH, "pre_launch failed, so that nothing was launched"),
    exit_phases.LAUNCH: (Reason.LAUNCH, "the launcher failed"),
}


def _status_of_process(process_end: ProcessEnd, *, has_runner: bool) -> JobStatus:
    time, code = process_end.time, _exit_code(process_end.wait_status)
    if code is None:
        message = "the process ended and left no record of its exit code"
        return failed_status(time, None, Reason.LOST, message, Evidence.ABSENCE)
    if not has_runner:
        return status_of_exit_code(time, code, Evidence.PROCESS)
    if os.WIFSIGNALED(process_end.wait_status or 0):
        message = f"the job's process was killed by {_signal_name(code - SIGNAL_BASE)}"
        metadata = {"signal": code - SIGNAL_BASE}
        return failed_status(time, code, Reason.SIGNAL, message, Evidence.PROCESS, metadata)
    if code == SETUP_CODE:
        return setup_failed_status(time, Evidence.PROCESS, {"marker": "missing"})
    # The runner exits with the job's code even if it could leave no marker.
    return status_of_exit_code(time, code, Evidence.PROCESS, {"marker": "missing"})


def setup_failed_status(time: datetime, evidence: Evidence, metadata: dict[str, Any]) -> JobStatus:
    """Return the final status of a runner that ended with `SETUP_CODE` and left no marker."""
    message = f"the job could not be set up, or the runner could not record its exit code {SETUP_CODE}"
    return failed_status(time, SETUP_CODE, Reason.SETUP, message, evidence, metadata)


def status_of_exit_code(
    time: datetime, code: int, evidence: Evidence, metadata: Mapping[str, Any] = _NOTHING
) -> JobStatus:
    """Return the final status of a job whose executable returned `code`, which is 128 + n after signal n."""
    if code == 0:
        return JobStatus(JobState.COMPLETED, time=time, exit_code=0, evidence=evidence, metadata=metadata)
    number = signal_number(code)
    if number is not None:
        message, metadata = f"ended by {_signal_name(number)}", {**metadata, "signal": number}
        return failed_status(time, code, Reason.SIGNAL, message, evidence, metadata)
    message = f"the executable returned exit code {code}"
    return failed_status(time, code, Reason.EXIT_CODE, message, evidence, metadata)


def signal_number(code: int | None) -> int | None:
    """Return the signal that an exit code stands for; None if it stands for none."""
    number = 0 if code is None else code - SIGNAL_BASE
    return number if 0 < number < signal.NSIG else None


def failed_status(  # noqa: PLR0913, PLR0917  the parts of a status
    time: datetime,
    code: int | None,
    reason: Reason | None,
    message: str,
    evidence: Evidence,
    metadata: Mapping[str, Any] = _NOTHING,
) -> JobStatus:
    """Return the final status of a job that failed."""
    return JobStatus(
        JobState.FAILED,
        time=time,
        exit_code=code,
        message=message,
        reason=reason,
        evidence=evidence,
        metadata=metadata,
    )


def _exit_code(wait_status: int | None) -> int | None:
    if wait_status is None:
        return None
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else SIGNAL_BASE - code


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def datetime_from_ns(time_ns: int) -> datetime:
    """Return the UTC time of a timestamp in nanoseconds since 1970."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC)


def parse_exit_phase(detail: str) -> str:
    """Return the phase in which a run ended, from the detail of its exit marker.

    >>> parse_exit_phase("executable-stage_out")
    'executable'
    """
    return detail.partition(ALSO)[0]


def add_staging_outcome(status: JobStatus, detail: str) -> JobStatus:
    """Add the phase that failed after the run, by the detail of its exit marker, to a final status.

    A completed job whose stage out failed becomes FAILED, as its results are not where the user wants
    them. A failed cleanup, which only leaves files behind, does not change the state.
    """
    failed_phase = detail.partition(ALSO)[2]
    if not failed_phase:
        return status
    annotated = attrs.evolve(status, metadata={**status.metadata, failed_phase: _FAILED})
    if failed_phase != STAGE_OUT or status.state is not JobState.COMPLETED:
        return annotated
    message = "the executable returned exit code 0"
    return attrs.evolve(annotated, state=JobState.FAILED, reason=Reason.STAGING, message=message)


def add_usage(status: JobStatus, marker: Marker) -> JobStatus:
    """Add what a run has used, by its exit marker, to a final status, unless the status has other figures."""
    figures = {"used.cpu": marker.cpu, "used.process_memory": marker.memory}
    # a run that was shorter than the kernel's unit of time was not measured
    used = {name: it for name, it in figures.items() if it}
    return attrs.evolve(status, metadata={**used, **status.metadata}) if used else status


def failed_staging_phase(status: JobStatus) -> str:
    """Return the phase of staging that failed after the job, by its final status; empty if none did."""
    return next((it for it in (STAGE_OUT, CLEANUP) if status.metadata.get(it) == _FAILED), "")
