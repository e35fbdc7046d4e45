"""The native ids of jobs, arrays and array elements, with or without the name of their server.

Hooks check every id by it before it becomes an argument of a command, and match the ids that qstat prints,
which may spell the server differently, to those that jpsi has queried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import Site, hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

# A job, an array or an array element; then the job's server, and the server to query. qstat takes any other
# text for the name of a queue.
_ID = re.compile(r"([0-9]{1,18}(?:\[[0-9]{0,9}\])?)(?:\.([A-Za-z0-9._-]+))?(?:@[A-Za-z0-9._:-]+)?")
IDS = IdForm("PBS", _ID.pattern)
# An array, or elements of one: the number, the indices, and the rest.
_ARRAY = re.compile(r"([0-9]{1,18})\[([0-9,:-]*)\](.*)")


@hookimpl
def canonical_id(native_id: str, site: Site) -> str:
    """Return the id with the name of the default server, if that is known and the id names no server."""
    canonical, server = IDS.canonical(native_id), site.offers.get("server")
    return canonical if server is None or "." in canonical or "@" in canonical else f"{canonical}.{server}"


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """Return the native ids of array elements, such as `17[3].server` of `17[].server`."""
    number, bracket, server = native_id.partition("[]")
    return [f"{number}[{index}]{server}" if bracket else native_id for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """Return the array of each native id that is an array element; other ids are left out."""
    return {native_id: array for native_id in native_ids for array in group_by_array([native_id])}


def group_by_array(native_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return the indices of the ids that are array elements, by array."""
    elements: dict[str, list[int]] = {}
    for native_id in native_ids:
        match = _ARRAY.fullmatch(native_id)
        if match is not None and match[2].isdecimal():
            elements.setdefault(f"{match[1]}[]{match[3]}", []).append(int(match[2]))
    return elements


def is_element(native_id: str) -> bool:
    """Return True if the id is that of an array element."""
    return bool(group_by_array([native_id]))


def compress_ids(native_ids: Sequence[str]) -> list[str]:
    """Return the fewest arguments that name these jobs; an array needs one per range of indices.

    >>> compress_ids(["17[1].a", "18.a", "17[3].a", "17[2].a", "17[9].a"])
    ['18.a', '17[1-3].a', '17[9].a']
    """
    single = [native_id for native_id in native_ids if not is_element(native_id)]
    # servers limit the length of a list of ranges
    ranges = (
        (array, run)
        for array, it in group_by_array(native_ids).items()
        for run in write_indices(it).split(",")
    )
    return [*single, *(array.replace("[]", f"[{run}]", 1) for array, run in ranges)]


def is_one_server(native_ids: Iterable[str]) -> bool:
    """Return True if these ids can belong to one server.

    >>> is_one_server(["17", "18.a", "19[].a.org"]), is_one_server(["18.a", "18.b"])
    (True, False)
    """
    servers = {_split_id(native_id)[1] for native_id in native_ids}
    longest = max(servers, key=len, default="")
    return bool(servers) and all(_is_same_server(server, longest) for server in servers)


def has_arrays_and_elements(native_ids: Iterable[str]) -> tuple[bool, bool]:
    """Return two flags: the ids include whole arrays, and the ids include array elements.

    >>> has_arrays_and_elements(["17", "18[].a", "19[3]"]), has_arrays_and_elements(["17"])
    ((True, True), (False, False))
    """
    arrays = [native_id for native_id in native_ids if "[" in native_id]
    whole_arrays = [native_id for native_id in arrays if "[]" in native_id]
    return bool(whole_arrays), len(whole_arrays) < len(arrays)


class QueriedIds:
    """The queried ids, to match against ids in qstat's output, which may spell the server differently.

    >>> QueriedIds(["17", "18.pbs.example.org"]).names("18.pbs")
    ['18.pbs.example.org']
    """

    def __init__(self, native_ids: Iterable[str] | None) -> None:
        self._by_number: dict[str, list[str]] | None = None
        if native_ids is not None:
            self._by_number = {}
            for native_id in native_ids:
                self._by_number.setdefault(_split_id(native_id)[0], []).append(native_id)

    def names(self, listed_id: str) -> list[str]:
        """Return the queried ids that mean the job with the id `listed_id`."""
        if not IDS.is_id(listed_id):
            return []
        if self._by_number is None:
            return [listed_id]
        number, server = _split_id(listed_id)
        return [it for it in self._by_number.get(number, ()) if _is_same_server(server, _split_id(it)[1])]


def map_to_queried(messages: Mapping[str, str], native_ids: Iterable[str]) -> dict[str, str]:
    """Map messages about jobs, arrays or ranges of elements to the queried ids."""
    native_ids = list(native_ids)
    queried, arrays = QueriedIds(native_ids), group_by_array(native_ids)
    mapped: dict[str, str] = {}
    for listed_id, message in messages.items():
        mapped.update(
            (name, message)
            for candidate in (listed_id, *_expand_elements(listed_id, arrays))
            for name in queried.names(candidate)
        )
    return mapped


def _expand_elements(listed_id: str, arrays: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield the ids of the elements that an array or a range of elements stands for; none for other ids."""
    match = _ARRAY.fullmatch(listed_id)
    if match is None or match[2].isdecimal():
        return
    if match[2]:
        indices = [index for indices in read_indices(match[2]) for index in indices]
    else:
        indices = [index for array, it in arrays.items() if array.startswith(f"{match[1]}[") for index in it]
    yield from (f"{match[1]}[{index}]{match[3]}" for index in indices)


def _split_id(native_id: str) -> tuple[str, str]:
    match = _ID.fullmatch(native_id)
    return ("", "") if match is None else (match[1], match[2] or "")


def _is_same_server(server: str, other: str) -> bool:
    """Return True if two names can mean one server: a name may be empty or lack its domain."""
    if not server or not other:
        return True
    return f"{server}.".startswith(f"{other}.") or f"{other}.".startswith(f"{server}.")
