"""The forms that the id of a Grid Engine job has."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A job, or a task of an array. Anything else is a pattern for names, with which qdel would end other jobs.
_ID = re.compile(r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?\Z")


def is_id(text: str) -> bool:
    """Whether Grid Engine takes `text` for the id of one job.

    >>> is_id("4711"), is_id("4711.3"), is_id("4711.1-3:1"), is_id("*")
    (True, True, False, False)
    """
    return _ID.match(text) is not None


def askable(native_ids: Iterable[str]) -> list[str]:
    """Those of `native_ids` that are ids."""
    return [native_id for native_id in native_ids if is_id(native_id)]


def canonical(native_id: str) -> str:
    """An id as it is.

    Raises:
        ValueError: it is none.
    """
    if not is_id(native_id):
        msg = f"{native_id!r} is no job id of Grid Engine's"
        raise ValueError(msg)
    return native_id
