"""Derives a job's exit code from the figures that Slurm reports for its end, without guessing."""

from __future__ import annotations

from typing import NamedTuple

from jpsi.plugin import Reason

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


def decode_wait_status(status: int) -> End:
    """Decode squeue's `exit_code` for a job that ran and was not ended by Slurm.

    It is a status as of wait(2), or, if Slurm could not start the job, one of Slurm's error numbers (4000 and
    above, slurm_errno.h), which differ from every status.
    """
    code, signal = status >> 8 & 0xFF, status & 0x7F
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
    message = f"exit code {code} or {_SIGNAL_BASE + int(code)}: sacct does not report which"
    return End(None, None, message)


def _end_by_signal(signal: int) -> End:
    if signal == _NOT_STARTED:
        return _LAUNCH_FAILED
    if signal > _LAST_SIGNAL:
        return _UNKNOWN_END
    return End(_SIGNAL_BASE + signal, Reason.SIGNAL)
