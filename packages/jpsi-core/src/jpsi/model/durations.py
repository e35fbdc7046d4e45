"""Reads durations as people write them, such as 1h30m; a mistake is a ValueError with a sentence."""

from __future__ import annotations

import re
from datetime import timedelta

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_SECONDS = re.compile(rf"(?P<seconds>{_NUMBER})")
# As Slurm and PBS write it: [[days-]hours:]minutes:seconds.
_CLOCK = re.compile(
    r"(?:(?:(?P<days>[0-9]{1,6})-)?(?P<hours>[0-9]{1,9}):)?(?P<minutes>[0-9]{1,9}):(?P<seconds>[0-9]{1,2})"
)
_WORDS = re.compile(
    rf"(?=.)(?:(?P<days>{_NUMBER})d)?(?:(?P<hours>{_NUMBER})h)?(?:(?P<minutes>{_NUMBER})m)?"
    rf"(?:(?P<seconds>{_NUMBER})s)?",
    re.IGNORECASE,
)
_SIXTY = 60


def parse_duration(text: str) -> timedelta:
    """Parse a duration: seconds, a clock or words; 0 means no limit.

    >>> parse_duration("90") == parse_duration("1:30") == parse_duration("1m30s") == timedelta(seconds=90)
    True
    >>> parse_duration("1-12:00:00") == parse_duration("1.5d") == timedelta(hours=36)
    True
    """
    parts = _parts(text)
    if parts is None:
        msg = f"{text!r} is not a time such as 90 (seconds), 10m, 2h30m or 1:30:00"
        raise ValueError(msg)
    try:
        return timedelta(**parts)
    except OverflowError:
        msg = f"{text!r} is too long a time; 0 means no limit"
        raise ValueError(msg) from None


def _parts(text: str) -> dict[str, float] | None:
    match = _SECONDS.fullmatch(text) or _CLOCK.fullmatch(text) or _WORDS.fullmatch(text)
    if match is None:
        return None
    found = {unit: float(number) for unit, number in match.groupdict(default="0").items()}
    is_clock = match.re is _CLOCK
    if is_clock and (found["seconds"] >= _SIXTY or (match["hours"] and found["minutes"] >= _SIXTY)):
        return None
    return found
