"""The forms that the id of an LSF job has."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: A job, or an element of an array, as part of a pattern.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"

_ID = re.compile(rf"{ID_PATTERN}\Z")
# lsb.params of LSF 10.1: MAX_JOBID. Larger numbers are taken for what is left of them in 32 bits.
_LARGEST = 2147483646


def is_id(text: str) -> bool:
    """Whether LSF takes `text` for the id of one job; 0 would be all of them.

    >>> is_id("4711"), is_id("4711[3]"), is_id("0"), is_id("99999999999999")
    (True, True, False, False)
    """
    return _ID.match(text) is not None and int(text.partition("[")[0]) <= _LARGEST


def askable(native_ids: Iterable[str]) -> list[str]:
    """Those of `native_ids` that are ids; one that is none would cost all others the answer."""
    return [native_id for native_id in native_ids if is_id(native_id)]
