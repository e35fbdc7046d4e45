"""Readers for options that many batch systems have, and what others are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from jpsi.contract import Draft, Reader

_COUNT = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))? ?([A-Za-z]*)")


def passed_over(_draft: Draft, _value: str) -> None:
    """A reader for an option that changes nothing for jpsi."""


def read_name(draft: Draft, value: str) -> None:
    """A reader for the name of a job."""
    draft.spec.name = value


def attribute(field: str) -> Reader:
    """A reader for an option that is the attribute of this name."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.attributes, field, value or None)

    return read


def count(field: str) -> Reader:
    """A reader for an option that is the field of this name in the resources."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.resources, field, read_count(value))

    return read


def path(field: str, patterns: re.Pattern[str]) -> Reader:
    """A reader for an option that is the path of this name; `patterns` as for `read_path`."""

    def read(draft: Draft, value: str) -> None:
        setattr(draft.spec, field, read_path(value, patterns))

    return read


def output(patterns: re.Pattern[str], others: Iterable[str]) -> Reader:
    """A reader for the file of the job's output, and of its errors too where none of `others` is given."""

    def read(draft: Draft, value: str) -> None:
        draft.spec.stdout_path = read_path(value, patterns)
        if not draft.options.keys() & set(others):
            draft.spec.stderr_path = draft.spec.stdout_path

    return read


def read_exclusive(draft: Draft, value: str) -> None:
    """A reader for the option that gives a job its nodes alone."""
    if value:
        msg = "jpsi has nodes shared with no other job, or with any"
        raise ValueError(msg)
    draft.resources.exclusive_node_use = True


def read_count(value: str) -> int:
    """A number of at least 1.

    Raises:
        ValueError: it is none.
    """
    if _COUNT.fullmatch(value) is None:
        msg = f"{value!r} is not one number"
        raise ValueError(msg)
    return int(value)


def read_amount(value: str, units: Mapping[str, int]) -> int:
    """An amount in whole ones, rounded up, of which the unit stands behind the number.

    >>> read_amount("1.5k", {"k": 1000})
    1500

    Raises:
        ValueError: it is none, or nothing at all.
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
    """A path, if it is the same for every job.

    Raises:
        ValueError: it has something in it that matches `patterns`, which stands for something else.
    """
    if not value or patterns.search(value):
        msg = "a path of jpsi has no patterns; without it the output is kept in the job's own folder"
        raise ValueError(msg)
    return Path(value)
