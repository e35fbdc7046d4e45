"""The native ids of LSF jobs, of arrays and of their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

#: A job, or an element of an array, as part of a pattern. The id 0 would mean all jobs.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"
# lsb.params of LSF 10.1: MAX_JOBID
_IDS = IdForm("LSF", ID_PATTERN, largest=2147483646)
# Elements of an array that are named together
_TOGETHER = re.compile(r"([1-9][0-9]{0,9})\[([0-9,:-]+)\]")
# Measured on volclava 2.2: it refuses lists of more than 73 ranges, and has room for 512 characters, which it
# does not count.
_RANGES = 40


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one."""
    return _IDS.canonical(native_id)


def is_id(text: str) -> bool:
    """Whether it is one.

    >>> is_id("17[3]"), is_id("17[~]")
    (True, False)
    """
    return _IDS.has(text)


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """The ids of elements of an array."""
    return [f"{native_id}[{index}]" for index in indices]


@hookimpl
def arrays_of(native_ids: Iterable[str]) -> dict[str, str]:
    """The arrays of those that are elements of one."""
    return {native_id: array_of(native_id) for native_id in native_ids if "[" in native_id}


def array_of(native_id: str) -> str:
    """The array of an element; a job by itself is its own.

    >>> array_of("17[3]"), array_of("17")
    ('17', '17')
    """
    return native_id.partition("[")[0]


def named(text: str) -> Iterator[str]:
    """The ids of jobs that a text names: a job, or several elements of one array.

    >>> list(named("17[1-3,7]")), list(named("17[1]")), list(named("17")), list(named("all"))
    (['17[1]', '17[2]', '17[3]', '17[7]'], ['17[1]'], ['17'], [])
    """
    match = _TOGETHER.fullmatch(text)
    if match is None:
        yield from [text] if _IDS.has(text) else []
        return
    try:
        indices = [index for part in read_indices(match[2]) for index in part]
    except ValueError:
        return
    yield from element_ids(match[1], indices)


def together(native_ids: Sequence[str]) -> list[str]:
    """Few words that name these jobs.

    >>> together(["17[1]", "18", "17[3]", "17[2]"])
    ['18', '17[1-3]']
    """
    words = [native_id for native_id in native_ids if "[" not in native_id]
    arrays: dict[str, list[int]] = {}
    for native_id, array in arrays_of(native_ids).items():
        arrays.setdefault(array, []).append(int(native_id[len(array) + 1 : -1]))
    for array, indices in arrays.items():
        words += [f"{array}[{part}]" for part in _parts(write_indices(indices))]
    return words


def _parts(indices: str) -> Iterator[str]:
    """A list of indices, in parts that LSF understands."""
    ranges = indices.split(",")
    for start in range(0, len(ranges), _RANGES):
        yield ",".join(ranges[start : start + _RANGES])
