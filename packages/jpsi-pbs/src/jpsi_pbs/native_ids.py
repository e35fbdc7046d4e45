"""The native ids of jobs, of arrays and of their elements: with the name of their server or without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import Site, hookimpl
from jpsi.plugin.kit import IdForm, read_indices, write_indices

# A job, an array, an element of an array; then the server, and where the job is to be looked for. Any other
# text would be taken for a queue.
_ID = re.compile(r"([0-9]{1,18}(?:\[[0-9]{0,9}\])?)(?:\.([A-Za-z0-9._-]+))?(?:@[A-Za-z0-9._:-]+)?")
IDS = IdForm("PBS", _ID.pattern)
# An array, or elements of one: its number, which elements, and what follows.
_OF_ARRAY = re.compile(r"([0-9]{1,18})\[([0-9,:-]*)\](.*)")


@hookimpl
def canonical_id(native_id: str, site: Site) -> str:
    """The id with the name of its server, if that is known: people leave out that of the default server."""
    whole, server = IDS.canonical(native_id), site.offers.get("server")
    return whole if server is None or "." in whole or "@" in whole else f"{whole}.{server}"


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """The ids of elements of an array: `17[3].server` of `17[].server`."""
    before, bracket, after = native_id.partition("[]")
    return [f"{before}[{index}]{after}" if bracket else native_id for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """The arrays of those that are elements of one."""
    return {native_id: array for native_id in native_ids for array in by_array([native_id])}


def by_array(native_ids: Iterable[str]) -> dict[str, list[int]]:
    """The indices of those that are elements, by array."""
    found: dict[str, list[int]] = {}
    for native_id in native_ids:
        match = _OF_ARRAY.fullmatch(native_id)
        if match is not None and match[2].isdecimal():
            found.setdefault(f"{match[1]}[]{match[3]}", []).append(int(match[2]))
    return found


def is_element(native_id: str) -> bool:
    """Whether it is the id of an element of an array."""
    return bool(by_array([native_id]))


def together(native_ids: Sequence[str]) -> list[str]:
    """As few words as name these jobs; of an array, one for each range.

    >>> together(["17[1].a", "18.a", "17[3].a", "17[2].a", "17[9].a"])
    ['18.a', '17[1-3].a', '17[9].a']
    """
    single = [native_id for native_id in native_ids if not is_element(native_id)]
    # a server has no room for lists of many ranges
    ranges = (
        (array, run) for array, it in by_array(native_ids).items() for run in write_indices(it).split(",")
    )
    return [*single, *(array.replace("[]", f"[{run}]", 1) for array, run in ranges)]


def is_one_server(native_ids: Iterable[str]) -> bool:
    """Whether these ids can be of one server.

    >>> is_one_server(["17", "18.a", "19[].a.org"]), is_one_server(["18.a", "18.b"])
    (True, False)
    """
    servers = {_parts(native_id)[1] for native_id in native_ids}
    longest = max(servers, key=len, default="")
    return bool(servers) and all(_agree(server, longest) for server in servers)


def kinds_of_arrays(native_ids: Iterable[str]) -> tuple[bool, bool]:
    """Whether there are whole arrays among these ids, and whether there are elements of one.

    >>> kinds_of_arrays(["17", "18[].a", "19[3]"]), kinds_of_arrays(["17"])
    ((True, True), (False, False))
    """
    arrays = [native_id for native_id in native_ids if "[" in native_id]
    wholes = [native_id for native_id in arrays if "[]" in native_id]
    return bool(wholes), len(wholes) < len(arrays)


class Asked:
    """The ids that were asked for, to be found again in an answer, which may spell them otherwise.

    >>> Asked(["17", "18.pbs.example.org"]).names("18.pbs")
    ['18.pbs.example.org']
    """

    def __init__(self, native_ids: Iterable[str] | None) -> None:
        self._by_number: dict[str, list[str]] | None = None
        if native_ids is not None:
            self._by_number = {}
            for native_id in native_ids:
                self._by_number.setdefault(_parts(native_id)[0], []).append(native_id)

    def names(self, shown: str) -> list[str]:
        """The ids that were asked for that mean the job with the id `shown`."""
        if not IDS.has(shown):
            return []
        if self._by_number is None:
            return [shown]
        number, server = _parts(shown)
        return [it for it in self._by_number.get(number, ()) if _agree(server, _parts(it)[1])]


def by_asked(answers: Mapping[str, str], native_ids: Iterable[str]) -> dict[str, str]:
    """What was said of jobs, or of their arrays, by the ids that were asked for."""
    native_ids = list(native_ids)
    asked, arrays = Asked(native_ids), by_array(native_ids)
    found: dict[str, str] = {}
    for shown, answer in answers.items():
        found.update(
            (name, answer) for one in (shown, *_elements(shown, arrays)) for name in asked.names(one)
        )
    return found


def _elements(shown: str, arrays: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The elements that are meant by an array, or by a range of its elements, if there are such."""
    match = _OF_ARRAY.fullmatch(shown)
    if match is None or match[2].isdecimal():
        return
    if match[2]:
        indices = [index for indices in read_indices(match[2]) for index in indices]
    else:
        indices = [index for array, it in arrays.items() if array.startswith(f"{match[1]}[") for index in it]
    yield from (f"{match[1]}[{index}]{match[3]}" for index in indices)


def _parts(native_id: str) -> tuple[str, str]:
    match = _ID.fullmatch(native_id)
    return ("", "") if match is None else (match[1], match[2] or "")


def _agree(server: str, other: str) -> bool:
    """Whether two names mean one server: one may be left out, or lack its domain."""
    if not server or not other:
        return True
    return f"{server}.".startswith(f"{other}.") or f"{other}.".startswith(f"{server}.")
