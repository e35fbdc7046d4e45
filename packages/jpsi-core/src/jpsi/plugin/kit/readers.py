"""Readers of options that many batch systems have, and functions to build other readers from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from jpsi.contract import Draft, Reader

_COUNT = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?([A-Za-z]*)")


def passed_over(_draft: Draft, _value: str) -> None:
    """Ignore an option that changes nothing for jpsi."""


def read_name(draft: Draft, value: str) -> None:
    """Read the name of a job."""
    draft.spec.name = value


def attribute(field: str) -> Reader:
    """Return a reader for an option that sets the attribute of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.attributes, field, value or None)

    return read


def count(field: str) -> Reader:
    """Return a reader for an option that sets the field of this name in the resources."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.resources, field, read_count(value))

    return read


def path(field: str, patterns: re.Pattern[str]) -> Reader:
    """Return a reader for an option that sets the path of this name; `patterns` as for `read_path`."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.spec, field, read_path(value, patterns))

    return read


def output(patterns: re.Pattern[str], others: Iterable[str]) -> Reader:
    """Return a reader for the file of the output, and of the errors if no option in `others` is given."""

    def read(draft: Draft, value: str) -> None:
        draft.spec.stdout_path = read_path(value, patterns)
        if not draft.options.keys() & set(others):
            draft.spec.stderr_path = draft.spec.stdout_path

    return read


def read_exclusive(draft: Draft, value: str) -> None:
    """Read the option that gives a job its nodes alone."""
    if value:
        msg = "jpsi has nodes shared with no other job, or with any"
        raise ValueError(msg)
    draft.resources.exclusive_node_use = True


def read_count(value: str) -> int:
    """Return a number of at least 1.

    Raises:
        ValueError: the text is no such number.
    """
    if _COUNT.fullmatch(value) is None:
        msg = f"{value!r} is not one number"
        raise ValueError(msg)
    return int(value)


def read_amount(value: str, units: Mapping[str, int]) -> int:
    """Return an amount as a whole number of ones, rounded up; the unit follows the number.

    >>> read_amount("1.5k", {"k": 1000})
    1500

    Raises:
        ValueError: the text is no amount, or the amount is zero.
    """
    amount = _AMOUNT.fullmatch(value)
    if amount is None or amount[3] not in units:
        msg = f"{value!r} is not an amount that jpsi understands"
        raise ValueError(msg)
    whole, fraction, unit = amount[1], amount[2] or "", amount[3]
    ones: int = -(-int(whole + fraction) * units[unit] // 10 ** len(fraction))
    if ones == 0:
        msg = f"{value!r} is a word of its own here, and no amount"
        raise ValueError(msg)
    return ones


def read_path(value: str, patterns: re.Pattern[str]) -> Path:
    """Return a path, if it is the same for every job.

    Raises:
        ValueError: it contains a placeholder that matches `patterns`.
    """
    if not value or patterns.search(value):
        msg = "a path of jpsi has no patterns; without it the output is kept in the job's own folder"
        raise ValueError(msg)
    return Path(value)
