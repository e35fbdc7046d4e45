"""The forms that the id of a Slurm job has."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A job, an element of an array, a component of a heterogeneous job
_ID = re.compile(r"([1-9][0-9]{0,9})(?:[_+][0-9]{1,9})?\Z")
_LARGEST = 0xFFFFFFFF


def is_id(text: str) -> bool:
    """Whether Slurm takes `text` for the id of one job.

    >>> is_id("4711_3"), is_id("4711_[3-5]"), is_id("-4711")
    (True, False, False)
    """
    match = _ID.match(text)
    return match is not None and int(match[1]) <= _LARGEST


def askable(native_ids: Iterable[str]) -> list[str]:
    """Those of `native_ids` that are ids; one that is none would cost all others the answer."""
    return [native_id for native_id in native_ids if is_id(native_id)]


def names_of(shown: str, number: str) -> tuple[str, ...]:
    """The native ids that a listed job answers to, from how it is shown and its number.

    An array's elements have numbers of their own, but for the last one to start: it takes that of the
    array, which stands for all of them.

    >>> names_of("233_5", "239"), names_of("233_9", "233"), names_of("138+1", "139")
    (('233_5', '239'), ('233_9',), ('138+1', '139'))
    """
    if shown == number or shown.partition("_")[0] == number:
        return (shown,)
    return (shown, number)
