"""The native ids of Slurm jobs, of arrays and of their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

#: The id of a job (`17`), an array element (`17_1`) or a component of a heterogeneous job (`17+1`).
IDS = IdForm("Slurm", r"[1-9][0-9]{0,9}([_+][0-9]{1,9})?", largest=0xFFFFFFFF)
# Several array elements as one text; the number after the percent sign is the limit of running elements
_ELEMENTS = re.compile(r"([1-9][0-9]{0,9})_\[([0-9,:-]+)(?:%[0-9]+)?\]")

# The suffix of the first component of a heterogeneous job, which runs the script
_FIRST_COMPONENT = "+0"
_ARRAY = re.compile(r"([1-9][0-9]{0,9})_\[")


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; the first component of a heterogeneous job has the job's id.

    >>> canonical_id("17+0"), canonical_id("17+1")
    ('17', '17+1')
    """
    return IDS.canonical(native_id).removesuffix(_FIRST_COMPONENT)


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """Return the native ids of an array's elements with these indices."""
    return [f"{native_id}_{index}" for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """Return the array of each native id that is an array element; other ids are left out."""
    return {native_id: native_id.partition("_")[0] for native_id in native_ids if "_" in native_id}


def group_by_array(native_ids: Iterable[str]) -> Mapping[str, Mapping[int, str]]:
    """Return the native ids of array elements by array and index; other ids are left out."""
    elements: dict[str, dict[int, str]] = {}
    for native_id in native_ids:
        array, is_element, index = native_id.partition("_")
        if is_element:
            elements.setdefault(array, {})[int(index)] = native_id
    return elements


def expand_ids(text: str) -> Iterator[str]:
    """Yield the native ids that a text names: one job, or several elements of one array.

    >>> list(expand_ids("17_[1-3,7%2]")), list(expand_ids("17_1")), list(expand_ids("all"))
    (['17_1', '17_2', '17_3', '17_7'], ['17_1'], [])

    The first component of a heterogeneous job runs the script and stands for the job.

    >>> list(expand_ids("17+0")), list(expand_ids("17+1"))
    (['17'], ['17+1'])
    """
    match = _ELEMENTS.fullmatch(text)
    if match is None:
        yield from [text.removesuffix(_FIRST_COMPONENT)] if IDS.is_id(text) else []
        return
    try:
        indices = read_indices(match[2])
    except ValueError:
        return  # Slurm cut the list of indices, as it was too long
    yield from (f"{match[1]}_{index}" for part in indices for index in part)


def parent_id(text: str) -> str:
    """Return the job that an element or component belongs to; return any other id itself.

    >>> parent_id("17_1"), parent_id("17+1"), parent_id("17")
    ('17', '17', '17')
    """
    return re.split("[_+]", text, maxsplit=1)[0]


def truncated_array(text: str) -> str | None:
    """Return the array of a text whose list of elements Slurm has cut short; None for any other text.

    >>> truncated_array("17_[1,3,5,7..."), truncated_array("17_[1-3]"), truncated_array("17_1")
    ('17', None, None)
    """
    match = _ARRAY.match(text)
    return match[1] if match is not None and not any(expand_ids(text)) else None


def compress_ids(native_ids: Sequence[str]) -> list[str]:
    """Return the fewest arguments that name these jobs; elements of one array become one argument.

    >>> compress_ids(["17_1", "18", "17_3", "17_2"])
    ['18', '17_[1-3]']
    """
    arrays = group_by_array(native_ids)
    single = [native_id for native_id in native_ids if "_" not in native_id]
    return single + [
        f"{array}_[{write_indices(elements)}]" if len(elements) > 1 else next(iter(elements.values()))
        for array, elements in arrays.items()
    ]
