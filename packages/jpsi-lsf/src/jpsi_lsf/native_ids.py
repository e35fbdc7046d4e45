"""The native ids of LSF jobs, of arrays and of their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

#: A pattern for the id of a job or an array element. LSF takes the id 0 for all jobs.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"
# lsb.params of LSF 10.1: MAX_JOBID
_IDS = IdForm("LSF", ID_PATTERN, largest=2147483646)
# Several array elements as one text
_ELEMENTS = re.compile(r"([1-9][0-9]{0,9})\[([0-9,:-]+)\]")
# Measured on volclava 2.2: it refuses lists of more than 73 ranges, and its buffer has 512 characters, which
# it does not check.
_MAX_RANGES = 40


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; raise ValueError if it is none."""
    return _IDS.canonical(native_id)


def is_id(text: str) -> bool:
    """Return True if the text is the id of a job or an array element.

    >>> is_id("17[3]"), is_id("17[~]")
    (True, False)
    """
    return _IDS.is_id(text)


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """Return the native ids of an array's elements with these indices."""
    return [f"{native_id}[{index}]" for index in indices]


@hookimpl
def arrays_of(native_ids: Iterable[str]) -> dict[str, str]:
    """Return the array of each native id that is an array element; other ids are left out."""
    return {native_id: array_of(native_id) for native_id in native_ids if "[" in native_id}


def array_of(native_id: str) -> str:
    """Return the array of an element; return any other id itself.

    >>> array_of("17[3]"), array_of("17")
    ('17', '17')
    """
    return native_id.partition("[")[0]


def expand_ids(text: str) -> Iterator[str]:
    """Yield the native ids that a text names: one job, or several elements of one array.

    >>> [list(expand_ids(text)) for text in ("17[1-3,7]", "17[1]", "17", "all")]
    [['17[1]', '17[2]', '17[3]', '17[7]'], ['17[1]'], ['17'], []]
    """
    match = _ELEMENTS.fullmatch(text)
    if match is None:
        yield from [text] if _IDS.is_id(text) else []
        return
    try:
        indices = [index for part in read_indices(match[2]) for index in part]
    except ValueError:
        return
    yield from element_ids(match[1], indices)


def compress_ids(native_ids: Sequence[str]) -> list[str]:
    """Return few arguments that name these jobs; elements of one array share arguments.

    >>> compress_ids(["17[1]", "18", "17[3]", "17[2]"])
    ['18', '17[1-3]']
    """
    words = [native_id for native_id in native_ids if "[" not in native_id]
    arrays: dict[str, list[int]] = {}
    for native_id, array in arrays_of(native_ids).items():
        arrays.setdefault(array, []).append(int(native_id[len(array) + 1 : -1]))
    for array, indices in arrays.items():
        words += [f"{array}[{part}]" for part in _split_ranges(write_indices(indices))]
    return words


def _split_ranges(indices: str) -> Iterator[str]:
    """Yield the list of indices in parts that are short enough for LSF."""
    ranges = indices.split(",")
    for start in range(0, len(ranges), _MAX_RANGES):
        yield ",".join(ranges[start : start + _MAX_RANGES])
