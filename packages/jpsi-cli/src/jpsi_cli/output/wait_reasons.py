"""Finds the reasons why jobs wait that a user should hear of, and what to do about them.

All commands that wait for jobs show them: `jpsi run`, `attach`, `wait` and `logs -f`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import jpsi

#: Advice about jobs that are held, by messages of the plugins; the first match counts.
HELD_ADVICE = (
    (r"administrator", "an administrator has to release {it}: ask yours, or as root: jpsi release {job}"),
    # Grid Engine has one state for both
    (r"\bheld\b(?!, or waits)", "let {it} start: jpsi release {job}"),
)
#: The seconds between two checks.
CHECK_SECONDS = 1.0
# A job that starts soon needs no reason.
_CHECKS_BEFORE_REASON = 5
_NUMBER = re.compile("[0-9]+")


class WaitReasons:
    """The reasons why jobs wait, each of which is returned once; that a job is held, once for each job."""

    def __init__(self, checks_before: int = _CHECKS_BEFORE_REASON) -> None:
        """Prepare.

        Args:
            checks_before: the first check that returns reasons; there is about one in a second.
        """
        self._checks_left = checks_before
        self._known: set[tuple[str, str]] = set()

    def check(self, jobs: Iterable[tuple[str, jpsi.JobStatus]]) -> dict[str, list[str]]:
        """Return the new reasons, with the names of the jobs that wait for them.

        Reasons that differ in numbers alone are one, with `N` for each number.
        """
        self._checks_left -= 1
        if self._checks_left > 0:
            return {}
        waiting: dict[str, list[str]] = {}
        for name, status in jobs:
            if status.state is jpsi.JobState.QUEUED and status.message:
                waiting.setdefault(status.message, []).append(name)
        found: dict[str, dict[str, list[str]]] = {}
        known = set[tuple[str, str]]()
        for reason, names in waiting.items():
            # PBS's reasons have the number of free cores, which changes all the time
            key = _NUMBER.sub("N", reason)
            # the user has to release each job
            is_held = bool(held_advice(reason))
            items = {name: (key, name if is_held else "") for name in names}
            known.update(items.values())
            new = [name for name, item in items.items() if item not in self._known]
            if new:
                found.setdefault(key, {})[reason] = new
        self._known |= known
        return {
            key if len(texts) > 1 else next(iter(texts)): list(itertools.chain(*texts.values()))
            for key, texts in found.items()
        }


def held_advice(reason: str) -> str:
    """Return the advice about jobs that are held, a format; empty if the reason is another."""
    found = (advice for pattern, advice in HELD_ADVICE if re.search(pattern, reason, re.IGNORECASE))
    return next(found, "")


def with_advice(reason: str) -> str:
    """Return why a job waits, with what to change if it can never start."""
    from jpsi_engine import describe_never  # noqa: PLC0415  few jobs wait so long

    advice = describe_never(reason, "--")
    return reason if advice is None else f"{reason}; {advice}; Ctrl-C ends the waiting"
