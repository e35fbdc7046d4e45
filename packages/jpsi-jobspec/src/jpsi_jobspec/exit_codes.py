"""The exit code of a run, and of a group: what has become of its parts, in a number. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi import JobState, Reason

from .events import DEPENDENCY_FAILED, NO_LONGER_NEEDED
from .journal import Part
from .telling import CANCELLED, DONE, JPSI, TIMEOUT

_LARGEST_CODE = 255
#: Of what is cancelled for these reasons nobody wanted the end.
_CONSEQUENCES = {DEPENDENCY_FAILED, NO_LONGER_NEEDED}


def code(parts: Iterable[Part]) -> int:
    """The exit code of what is over: that of the first task that did not end well."""
    ended = list(parts)
    failed = next((it for it in ended if it.state is JobState.FAILED), None)
    if failed is not None:
        return _code(failed)
    is_cancelled = any(it.state is JobState.CANCELED and it.reason not in _CONSEQUENCES for it in ended)
    return CANCELLED if is_cancelled else DONE


def _code(failed: Part) -> int:
    if failed.reason == Reason.TIMEOUT.value:
        return TIMEOUT
    # what has failed must not look like a success
    given = failed.exit_code
    return given if given is not None and 0 < given <= _LARGEST_CODE else JPSI
