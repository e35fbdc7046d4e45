"""Numbers, sizes and times as people type them; a mistake is a ValueError with a sentence."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_SIZE = re.compile(rf"(?P<number>{_NUMBER})(?P<unit>[kmgtp]?)(?:i?b)?", re.IGNORECASE)
_SECONDS = re.compile(_NUMBER)
# As Slurm and PBS write it: [[days-]hours:]minutes:seconds.
_CLOCK = re.compile(
    r"(?:(?:(?P<days>[0-9]{1,6})-)?(?P<hours>[0-9]{1,9}):)?(?P<minutes>[0-9]{1,9}):(?P<seconds>[0-9]{1,2})"
)
_WORDS = re.compile(
    rf"(?=.)(?:(?P<days>{_NUMBER})d)?(?:(?P<hours>{_NUMBER})h)?(?:(?P<minutes>{_NUMBER})m)?"
    rf"(?:(?P<seconds>{_NUMBER})s)?",
    re.IGNORECASE,
)
_COUNT = re.compile("[0-9]{1,15}")
_SIXTY = 60


def count(text: str) -> int:
    """A whole number of at least 1.

    >>> count("12")
    12
    """
    return _at_least(text, 1)


def count_or_none(text: str) -> int:
    """A whole number, which may be 0."""
    return _at_least(text, 0)


def _at_least(text: str, least: int) -> int:
    if _COUNT.fullmatch(text) is None or int(text) < least:
        msg = f"{text!r} is not a whole number of at least {least}"
        raise ValueError(msg)
    return int(text)


def size(text: str) -> int:
    """A number of bytes; K, M, G, T and P are powers of 1024.

    >>> size("4G") == size("4GiB") == size("4096mb") == 4 * 1024**3
    True
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is not a size such as 4G, 512M or 1073741824 (bytes)"
        raise ValueError(msg)
    whole, _, fraction = match["number"].partition(".")
    # Whole numbers all the way: a float would not hold every size.
    number: int = -(-int(whole + fraction) * _UNITS[match["unit"].lower()] // 10 ** len(fraction))
    if number == 0:
        msg = f"{text!r} is no memory at all"
        raise ValueError(msg)
    return number


def duration(text: str) -> timedelta:
    """A time: seconds, a clock or words; 0 means no limit.

    >>> duration("90") == duration("1:30") == duration("1m30s") == timedelta(seconds=90)
    True
    >>> duration("1-12:00:00") == duration("1.5d") == timedelta(hours=36)
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
    if _SECONDS.fullmatch(text):
        return {"seconds": float(text)}
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        found = {unit: int(number) for unit, number in clock.groupdict(default="0").items()}
        has_hours = clock["hours"] is not None
        if found["seconds"] >= _SIXTY or (has_hours and found["minutes"] >= _SIXTY):
            return None
        return dict(found)
    words = _WORDS.fullmatch(text)
    if words is not None:
        return {unit: float(number) for unit, number in words.groupdict(default="0").items()}
    return None
