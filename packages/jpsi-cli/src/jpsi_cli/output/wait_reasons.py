"""Finds the reasons why jobs wait that a user should hear of, and what to do about them.

All commands that wait for jobs show them: `jpsi run`, `attach`, `wait` and `logs -f`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import jpsi

#: Advice about jobs that are held, by messages of the plugins; the first match counts.
HELD_ADVICE = (
    (r"administrator", "an administrator has to release {it}: ask yours, or as root: jpsi release {job}"),
    (r"\bheld\b", "let {it} start: jpsi release {job}"),
)
#: The seconds between two checks.
CHECK_SECONDS = 1.0
# A job that starts soon needs no reason.
_CHECKS_BEFORE_REASON = 5
_NUMBER = re.compile("[0-9]+")


class WaitReasons:
    """The reasons why jobs wait, each of which is returned once."""

    def __init__(self, checks_before: int = _CHECKS_BEFORE_REASON) -> None:
        """Prepare.

        Args:
            checks_before: the first check that returns reasons; there is about one in a second.
        """
        self._checks_left = checks_before
        self._known: set[str] = set()

    def check(self, jobs: Iterable[tuple[str, jpsi.JobStatus]]) -> dict[str, list[str]]:
        """Return the new reasons, with the names of the jobs that wait for them."""
        self._checks_left -= 1
        if self._checks_left > 0:
            return {}
        waiting: dict[str, list[str]] = {}
        for name, status in jobs:
            if status.state is jpsi.JobState.QUEUED and status.message:
                waiting.setdefault(status.message, []).append(name)
        found: dict[str, tuple[str, list[str]]] = {}
        for reason, names in waiting.items():
            # PBS's reasons have the number of free cores, which changes all the time
            found.setdefault(_NUMBER.sub("0", reason), (reason, []))[1].extend(names)
        new = {reason: names for key, (reason, names) in found.items() if key not in self._known}
        self._known.update(found)
        return new


def with_advice(reason: str) -> str:
    """Return why a job waits, with what to change if it can never start."""
    from jpsi_engine import describe_never  # noqa: PLC0415  few jobs wait so long

    advice = describe_never(reason, "--")
    return reason if advice is None else f"{reason}; {advice}; Ctrl-C ends the waiting"
