"""The exit codes of the commands, of a run, and of a group. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi import JobState, Reason

from ..run_store import DEPENDENCY_FAILED, NO_LONGER_NEEDED, Part

#: The exit codes of the commands, as everywhere in `jpsi`.
EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_TIMEOUT, EXIT_JPSI, EXIT_CANCELLED = 0, 1, 2, 124, 125, 130
_LARGEST_CODE = 255
#: Reasons of cancellations that are consequences: no user asked for them.
_CONSEQUENCES = {DEPENDENCY_FAILED, NO_LONGER_NEEDED}


def exit_code_of(parts: Iterable[Part]) -> int:
    """Return the exit code of a run that is over: that of the first task that has failed."""
    ended = list(parts)
    failed = next((it for it in ended if it.state is JobState.FAILED), None)
    if failed is not None:
        return _code(failed)
    is_cancelled = any(it.state is JobState.CANCELED and it.reason not in _CONSEQUENCES for it in ended)
    return EXIT_CANCELLED if is_cancelled else EXIT_DONE


def _code(failed: Part) -> int:
    if failed.reason == Reason.TIMEOUT.value:
        return EXIT_TIMEOUT
    # what has failed must not look like a success
    code = failed.exit_code
    return code if code is not None and 0 < code <= _LARGEST_CODE else EXIT_JPSI
