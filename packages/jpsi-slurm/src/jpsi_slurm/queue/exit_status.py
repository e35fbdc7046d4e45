"""What Slurm's figures for the end of a job say of its exit code; never more than they do."""

from __future__ import annotations

from typing import NamedTuple

from jpsi.plugin import Reason

#: 128 + n is the code of a job that signal n ended.
_SIGNAL_BASE = 128
# What is left of Slurm's error number 4021 where a signal's number is expected: slurmd could not start the
# script, as for a directory or an output file that is not there. Others of its error numbers also end up
# above the signals that have a name.
_NOT_STARTED = 53
_LAST_SIGNAL = 31


class End(NamedTuple):
    """How a job's script ended."""

    exit_code: int | None = None
    reason: Reason | None = None
    message: str | None = None


_UNKNOWN = End()
_LAUNCH_FAILED = End(None, Reason.LAUNCH, "Slurm could not start the job on its nodes")


def end_of_wait_status(status: int) -> End:
    """The end that squeue's `exit_code` tells of a job that ran and was not ended by Slurm.

    It is a status as of wait(2); where the job could not be started, an error number of Slurm's (4000 and
    above, slurm_errno.h), which no status looks like.
    """
    code, number = status >> 8 & 0xFF, status & 0x7F
    if number == 0:
        return End(code)
    return _LAUNCH_FAILED if code else _signalled(number)


def end_of_accounting(text: str, *, whole: bool) -> End:
    """The end that sacct's `ExitCode` tells, such as `7:0`, code and signal.

    Args:
        text: the field.
        whole: whether sacct tells codes above 127. Before Slurm 25.11 it takes 128 from them, so that
            only 0 of a completed job is certain.
    """
    code, _, number = text.partition(":")
    if not code.isdecimal() or not number.isdecimal():
        return _UNKNOWN
    if int(number) != 0:
        return _signalled(int(number))
    if whole:
        return End(int(code))
    either = f"exit code {code} or {_SIGNAL_BASE + int(code)}: sacct does not tell which"
    return End(None, None, either)


def _signalled(number: int) -> End:
    if number == _NOT_STARTED:
        return _LAUNCH_FAILED
    if number > _LAST_SIGNAL:
        return _UNKNOWN
    return End(_SIGNAL_BASE + number, Reason.SIGNAL)
