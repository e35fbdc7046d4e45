"""The native ids of Slurm jobs, of arrays and of their elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

#: A job, an element of an array, a component of a heterogeneous job.
IDS = IdForm("Slurm", r"[1-9][0-9]{0,9}([_+][0-9]{1,9})?", largest=0xFFFFFFFF)
# Elements of an array that are named together; behind the percent sign, how many of them may run at a time
_TOGETHER = re.compile(r"([1-9][0-9]{0,9})_\[([0-9,:-]+)(?:%[0-9]+)?\]")

# How the first component of a heterogeneous job is shown, where the script runs
_FIRST = "+0"
_SOME = re.compile(r"([1-9][0-9]{0,9})_\[")


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one; the first component of a heterogeneous job has that of the job.

    >>> canonical_id("17+0"), canonical_id("17+1")
    ('17', '17+1')
    """
    return IDS.canonical(native_id).removesuffix(_FIRST)


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """The ids of elements of an array."""
    return [f"{native_id}_{index}" for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """The arrays of those that are elements of one."""
    return {native_id: native_id.partition("_")[0] for native_id in native_ids if "_" in native_id}


def by_array(native_ids: Iterable[str]) -> Mapping[str, Mapping[int, str]]:
    """Those that are elements of arrays, by array and index."""
    found: dict[str, dict[int, str]] = {}
    for native_id in native_ids:
        array, is_element, index = native_id.partition("_")
        if is_element:
            found.setdefault(array, {})[int(index)] = native_id
    return found


def named(text: str) -> Iterator[str]:
    """The ids of jobs that a text names: a job, or several elements of one array.

    >>> list(named("17_[1-3,7%2]")), list(named("17_1")), list(named("all"))
    (['17_1', '17_2', '17_3', '17_7'], ['17_1'], [])

    The first component of a heterogeneous job, which runs the script, is the job.

    >>> list(named("17+0")), list(named("17+1"))
    (['17'], ['17+1'])
    """
    match = _TOGETHER.fullmatch(text)
    if match is None:
        yield from [text.removesuffix(_FIRST)] if IDS.has(text) else []
        return
    try:
        indices = read_indices(match[2])
    except ValueError:
        return  # cut short, as it was too long
    yield from (f"{match[1]}_{index}" for part in indices for index in part)


def whole(text: str) -> str:
    """The job that an id is an element or a component of; itself if it is neither.

    >>> whole("17_1"), whole("17+1"), whole("17")
    ('17', '17', '17')
    """
    return re.split("[_+]", text, maxsplit=1)[0]


def of_unclear(text: str) -> str | None:
    """The array of which a text names elements, if it does not say which, as it is cut short.

    >>> of_unclear("17_[1,3,5,7..."), of_unclear("17_[1-3]"), of_unclear("17_1")
    ('17', None, None)
    """
    match = _SOME.match(text)
    return match[1] if match is not None and not any(named(text)) else None


def together(native_ids: Sequence[str]) -> list[str]:
    """As few words as name these jobs.

    >>> together(["17_1", "18", "17_3", "17_2"])
    ['18', '17_[1-3]']
    """
    arrays = by_array(native_ids)
    single = [native_id for native_id in native_ids if "_" not in native_id]
    return single + [
        f"{array}_[{write_indices(elements)}]" if len(elements) > 1 else next(iter(elements.values()))
        for array, elements in arrays.items()
    ]
