"""Turns a row of squeue or sacct into the Observation of one job, without guessing its exit code.

`squeue` and `sacct` use it. An exit code is reported only if the figures prove it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import attrs

from jpsi.plugin import JobState, Meaning, Observation, Reason
from jpsi.plugin.kit import expand_hostlist, extract_tag, parse_count, parse_time

from ..states import NO_REASONS, STATES, pending_message, pending_reason
from .listing import Row

# The node column of squeue, sacct and scontrol for a job without nodes
_NO_NODES = frozenset({"", "(null)", "None assigned", "n/a"})
# Slurm itself caused every other end, and its exit figures then describe how: a job that exceeded its
# walltime has 0:15 in one command and 0:0 in another.
_OWN_END_STATES = frozenset({"COMPLETED", "FAILED"})
#: 128 + n is the exit code of a job that signal n ended.
_SIGNAL_BASE = 128
# The remainder of Slurm's error number 4021 in the place of a signal number: slurmd could not start the
# script, for example because a directory or an output file is missing. Other error numbers of Slurm also
# leave remainders above the named signals.
_NOT_STARTED = 53
_LAST_SIGNAL = 31


class End(NamedTuple):
    """The end of a job's script: its exit code, the reason and a message, as far as Slurm reports them."""

    exit_code: int | None = None
    reason: Reason | None = None
    message: str | None = None


_UNKNOWN_END = End()
_LAUNCH_FAILED = End(None, Reason.LAUNCH, "Slurm could not start the job on its nodes")


def decode_wait_status(text: str) -> End:
    """Decode squeue's `exit_code` for a job that ran and was not ended by Slurm.

    It is a status as of wait(2), or, if Slurm could not start the job, one of Slurm's error numbers (4000 and
    above, slurm_errno.h), which differ from every status.
    """
    if not text.isdecimal():
        return _UNKNOWN_END
    code, signal = int(text) >> 8 & 0xFF, int(text) & 0x7F
    if signal == 0:
        return End(code)
    return _LAUNCH_FAILED if code else _end_by_signal(signal)


def decode_accounting_code(text: str, *, has_full_codes: bool) -> End:
    """Decode sacct's `ExitCode`, such as `7:0`: exit code and signal.

    Args:
        text: the field.
        has_full_codes: True if sacct reports codes above 127. Before Slurm 25.11 it subtracts 128 from them,
            so that only the 0 of a completed job is certain.
    """
    code, _, signal = text.partition(":")
    if not code.isdecimal() or not signal.isdecimal():
        return _UNKNOWN_END
    if int(signal) != 0:
        return _end_by_signal(int(signal))
    if has_full_codes:
        return End(int(code))
    return End(message=f"exit code {code} or {_SIGNAL_BASE + int(code)}: sacct does not report which")


def _end_by_signal(signal: int) -> End:
    if signal == _NOT_STARTED:
        return _LAUNCH_FAILED
    return _UNKNOWN_END if signal > _LAST_SIGNAL else End(_SIGNAL_BASE + signal, Reason.SIGNAL)


def observe_row(row: Row, end: End = _UNKNOWN_END, *, cancelled_by: str | None = None) -> Observation:
    """Return the Observation for a job's columns, with the tag from its comment.

    Args:
        row: the columns.
        end: the end decoded from the exit code; used only for jobs that ran and were not ended by Slurm.
        cancelled_by: the number of the user who cancelled the job.
    """
    # the reason why the job is pending, was pending when cancelled, or ended
    reason_code = " ".join(row.reason.split())
    shown_reason = "" if reason_code in NO_REASONS else reason_code
    values = {"state": row.state, "reason": shown_reason, "cancelled_by": cancelled_by}
    observation = Observation(
        state=None,
        native_state=row.state,
        tag=extract_tag(row.comment),
        # For a requeued job, squeue reports the time of the requeue as the submit time.
        submitted=parse_time(row.submitted),
        details={f"slurm.{name}": text for name, text in values.items() if text},
    )
    meaning = STATES.get(row.state)
    if meaning is None:
        return observation
    ran_on = () if row.nodes in _NO_NODES else expand_hostlist(row.nodes)
    if not ran_on or row.state not in _OWN_END_STATES:
        # The exit code of a job that never ran is Slurm's own, such as 1 for a refused request.
        end = _UNKNOWN_END
    restarts, is_queued = parse_count(row.restarts), meaning.state is JobState.QUEUED
    reason, message = _explain(row.state, meaning, reason_code, end, has_run=bool(ran_on))
    if row.state == "PENDING" and restarts:
        reason = reason or Reason.REQUEUED
    return attrs.evolve(
        observation,
        state=meaning.state,
        reason=reason,
        message=message if cancelled_by is None else f"{message} by the user with number {cancelled_by}",
        exit_code=end.exit_code,
        ran=_has_run(meaning.state, reason, restarts, is_placed=bool(ran_on)),
        time=_state_time(meaning.state, row),
        restarts=restarts,
        nodes=ran_on,
        start_estimate=parse_time(row.started) if is_queued else None,
    )


def _explain(
    native_state: str, meaning: Meaning, reason_code: str, end: End, *, has_run: bool
) -> tuple[Reason | None, str | None]:
    reason, message = pending_reason(reason_code), pending_message(reason_code)
    # Slurm itself cancels a job that can never run, with --kill-on-invalid-dep
    if native_state == "PENDING" or (native_state == "CANCELLED" and reason is not None):
        return reason, message
    if native_state == "FAILED" and not has_run:
        return Reason.LAUNCH, message or "Slurm could not start the job"
    return end.reason or meaning.reason, end.message or meaning.message


def _has_run(state: JobState, reason: Reason | None, restarts: int | None, *, is_placed: bool) -> bool | None:
    """Return True if any part of the job ran; None if an earlier run may have."""
    if state is JobState.QUEUED:
        return None
    if is_placed and reason is not Reason.LAUNCH:
        return True
    return False if restarts == 0 else None


def _state_time(state: JobState, row: Row) -> datetime | None:
    if state is JobState.QUEUED:
        return parse_time(row.submitted)
    return parse_time(row.ended if state.final else row.started)
