"""Asking bhist for jobs that bjobs has forgotten or does not explain, and reading its answers."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import Command, CommandResult, Observation, Site, SubmitException

from .commands import lsf
from .histories import histories, observation
from .ids import askable
from .probe import Offers

# bhist of LSF 10.1, -n: all event logs. Otherwise it looks into the newest alone, which begins anew after
# 1000 jobs or so (MAX_JOB_NUM).
_EVERYWHERE = ("-n", "0")
# Its code is not 0 then, and some versions print it to standard output.
_UNKNOWN_JOB = ("No matching job found", "Illegal job ID")


def query_finished(native_ids: Sequence[str]) -> Command:
    """The command that asks the event logs."""
    return lsf("bhist", *_EVERYWHERE, "-l", *(askable(native_ids) or native_ids))


def finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> dict[str, Observation]:
    """What bhist said about each job; of a job that was put back, its last run."""
    # some may be unknown, and others not
    found = histories(result.stdout if _is_unknown(result) else result.checked().stdout)
    if not found and not _is_unknown(result):
        msg = f"bhist gave no answer: {result.complaint}"
        raise SubmitException(msg, transient=True)
    asked, modern = frozenset(native_ids), Offers.of(site).json is True
    return {
        history.name: observation(history, done_is_zero=modern) for history in found if history.name in asked
    }


def _is_unknown(result: CommandResult) -> bool:
    said = result.stdout + result.stderr
    return result.returncode > 0 and any(text in said for text in _UNKNOWN_JOB)
