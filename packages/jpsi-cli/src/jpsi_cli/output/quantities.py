"""Parses and formats numbers, sizes and times as people type them in options.

A mistake raises ValueError with a sentence, or UsageError where a function says so.
"""

from __future__ import annotations

import re
from datetime import timedelta

import click

from jpsi import parse_duration

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_SIZE = re.compile(rf"(?P<number>{_NUMBER})(?P<unit>[kmgtp]?)(?:i?b)?", re.IGNORECASE)
# From here on, a decimal place adds nothing.
_DIGITS = 10
_UNITS_OF_TIME = ("hours", "minutes", "seconds")
_SLURM_TIME = re.compile(r"(?:(?P<days>[0-9]{1,6})-)?(?P<rest>[0-9]{1,9}(?::[0-9]{1,9}){0,2})")
_COUNT = re.compile("[0-9]{1,15}")


def parse_duration_option(text: str, option: str) -> timedelta:
    """Return a duration that the user typed; raise UsageError if it is none."""
    try:
        return parse_duration(text)
    except ValueError as e:
        msg = f"{option}: {e}"
        raise click.UsageError(msg) from e


def parse_slurm_time(text: str) -> timedelta:
    """Return a duration in one of the forms of sbatch(1), --time, or in one of jpsi's with units.

    >>> [str(parse_slurm_time(it)) for it in ("90", "10:30", "1:00:30", "1-12", "2h")]
    ['1:30:00', '0:10:30', '1:00:30', '1 day, 12:00:00', '2:00:00']
    """
    match = _SLURM_TIME.fullmatch(text)
    if match is None:
        try:
            return parse_duration(text)
        except ValueError as e:
            msg = f"{text!r} is not a time such as 90 (minutes), 1:30:00, 2-12 (days-hours) or 10m"
            raise ValueError(msg) from e
    days, *parts = (int(it or 0) for it in (match["days"], *match["rest"].split(":")))
    # the first number is hours after days, and before two others
    first = 0 if match["days"] is not None or len(parts) == len(_UNITS_OF_TIME) else 1
    units = _UNITS_OF_TIME[first : first + len(parts)]
    return timedelta(days=days, **dict(zip(units, parts, strict=True)))


def parse_count(text: str) -> int:
    """Return a whole number of at least 1.

    >>> parse_count("12")
    12
    """
    return _parse_at_least(text, 1)


def parse_count_or_zero(text: str) -> int:
    """Return a whole number, which may be 0."""
    return _parse_at_least(text, 0)


def _parse_at_least(text: str, least: int) -> int:
    if _COUNT.fullmatch(text) is None or int(text) < least:
        msg = f"{text!r} is not a whole number of at least {least}"
        raise ValueError(msg)
    return int(text)


def parse_size(text: str) -> int:
    """Return a number of bytes; K, M, G, T and P are powers of 1024. Without a unit, less than 1M is refused.

    >>> parse_size("4G") == parse_size("4GiB") == parse_size("4096mb") == 4 * 1024**3
    True
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        msg = f"{text!r} is not a size such as 4G, 512M or 1073741824 (bytes)"
        raise ValueError(msg)
    whole, _, fraction = match["number"].partition(".")
    # Integers only: a float would not hold every size exactly.
    number: int = -(-int(whole + fraction) * _UNITS[match["unit"].lower()] // 10 ** len(fraction))
    if number == 0:
        msg = f"{text!r} is zero; a job needs memory"
        raise ValueError(msg)
    if text[-1].isdigit() and number < _UNITS["m"]:
        msg = f"{text!r} is a number of bytes, too few for any job: add a unit, such as {text}G or {text}M"
        raise ValueError(msg)
    return number


def format_about(count: float) -> str:
    """Return a number of bytes with two digits or more, for people.

    >>> [format_about(it) for it in (1000, 3.14 * 1024**3, 313 * 1024**2)]
    ['1000', '3.1G', '313M']
    """
    unit = max((it for it in _UNITS if count >= _UNITS[it]), key=_UNITS.__getitem__, default="")
    number = count / _UNITS[unit]
    return f"{number:.1f}{unit.upper()}" if unit and number < _DIGITS else f"{number:.0f}{unit.upper()}"


def format_size(count: int) -> str:
    """Return a number of bytes in the spelling that `parse_size` reads.

    >>> [format_size(it) for it in (1024**3, 3 * 1024**2 // 2, 1000)]
    ['1G', '1536K', '1000']
    """
    for unit in reversed("KMGTP"):
        whole, rest = divmod(count, _UNITS[unit.lower()])
        if whole and not rest:
            return f"{whole}{unit}"
    return str(count)
