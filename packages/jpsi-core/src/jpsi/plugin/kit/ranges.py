"""Reads and writes host lists, and ids and indices of array elements, as in `node[01-03]` and `1-9:2`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from jpsi.contract import hookimpl
from jpsi.plugin.kit.command_results import IdForm

# node[01-03,7], and anything between commas; a name may have several brackets
_NAME = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_BRACKET = re.compile(r"([^\[]*)\[([^\]]*)\](.*)\Z", re.DOTALL)
_HOST_RANGE = re.compile(r"([0-9]+)-([0-9]+)\Z")
# No machine has more nodes; a garbled list must not fill the memory.
_MAX_NODES = 1_000_000
# 7, 1-5 and 1-9:2
_INDEX_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?\Z")


def expand_hostlist(text: str) -> tuple[str, ...]:
    """Return the nodes of a host list (Slurm: scontrol(1), show hostnames; Flux: RFC 29).

    >>> expand_hostlist("login1,node[08-10,x]-ib")
    ('login1', 'node08-ib', 'node09-ib', 'node10-ib', 'nodex-ib')
    """
    return tuple(node for name in _NAME.findall(text) for node in _expand(name) if node)


def _expand(name: str) -> Iterator[str]:
    bracket = _BRACKET.match(name)
    if bracket is None:
        yield name
        return
    prefix, inside, suffix = bracket.groups()
    ends = list(_expand(suffix))
    for part in inside.split(","):
        for number in _numbers(part):
            yield from (f"{prefix}{number}{end}" for end in ends)


def _numbers(part: str) -> Iterator[str]:
    match = _HOST_RANGE.match(part)
    if match is None or int(match[2]) - int(match[1]) > _MAX_NODES:
        yield part
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield f"{number:0{len(first)}}"


def read_indices(text: str) -> list[range]:
    """Return the ranges of indices in a text.

    >>> read_indices("1-3,7,10-20:5")
    [range(1, 4), range(7, 8), range(10, 21, 5)]

    Raises:
        ValueError: the text is no list of indices.
    """
    found = []
    for part in text.split(","):
        match = _INDEX_RANGE.match(part)
        if match is None:
            msg = f"{text!r} names no indices of an array"
            raise ValueError(msg)
        first = int(match[1])
        found.append(range(first, int(match[2] or first) + 1, int(match[3] or 1)))
    return found


def write_indices(indices: Iterable[int]) -> str:
    """Return a text for these indices, as short as it can be without steps.

    >>> write_indices([9, 3, 1, 2])
    '1-3,9'
    """
    runs: list[list[int]] = []
    for index in sorted(set(indices)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1] = [runs[-1][0], index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)


@attrs.frozen(slots=True)
class ArrayIds(IdForm):
    """The native ids of one system, of which those of array elements are the array's id and an index.

    >>> ids = ArrayIds("ACME", r"[1-9][0-9]*(_[0-9]+)?", "{}_{}", "{}_[{}]")
    >>> ids.element_ids("17", [1, 2]), ids.arrays_of(["17_1", "18"]), ids.array_of("17_1")
    (['17_1', '17_2'], {'17_1': '17'}, '17')

    `canonical_id`, `element_ids` and `arrays_of` are the hooks of these names.
    """

    #: The id of one element, by the array's id and the index.
    element: str
    #: The text for several elements, by the array's id and ranges of indices.
    elements: str
    #: The most ranges in such a text; None is any number.
    most_ranges: int | None = attrs.field(default=None, kw_only=True)
    _several: re.Pattern[str] = attrs.field(init=False)

    @_several.default
    def _several_pattern(self) -> re.Pattern[str]:
        prefix, suffix = map(re.escape, self.elements.split("{}")[1:])
        return re.compile(rf"([1-9][0-9]{{0,9}}){prefix}([0-9,:-]+)(?:%[0-9]+)?{suffix}")

    @hookimpl
    def canonical_id(self, native_id: str) -> str:
        """Return the id if it is one; raise ValueError if it is none."""
        return self.canonical(native_id)

    @hookimpl
    def element_ids(self, native_id: str, indices: Iterable[int]) -> list[str]:
        """Return the native ids of an array's elements with these indices."""
        return [self.element.format(native_id, index) for index in indices]

    @hookimpl
    def arrays_of(self, native_ids: Iterable[str]) -> dict[str, str]:
        """Return the array of each native id that is an array element; other ids are left out."""
        return {native_id: self.array_of(native_id) for native_id in native_ids if self._joint in native_id}

    def array_of(self, native_id: str) -> str:
        """Return the array of an element; return any other id itself."""
        return native_id.partition(self._joint)[0]

    def expand(self, text: str) -> list[str]:
        """Return the native ids that a text names: one job, or several elements of one array.

        A limit of running elements may follow the indices, as in `17_[1-3%2]`. A text that names no jobs, or
        whose indices are cut off, gives none.

        >>> ids = ArrayIds("ACME", r"[1-9][0-9]*(_[0-9]+)?", "{}_{}", "{}_[{}]")
        >>> ids.expand("17_[1-3,7%2]"), ids.expand("17_1"), ids.expand("17_[1,..."), ids.expand("all")
        (['17_1', '17_2', '17_3', '17_7'], ['17_1'], [], [])
        """
        match = self._several.fullmatch(text)
        if match is None:
            return [text] if self.is_id(text) else []
        try:
            return self.element_ids(match[1], [index for part in read_indices(match[2]) for index in part])
        except ValueError:
            return []

    def compress(self, native_ids: Sequence[str]) -> list[str]:
        """Return the fewest texts that name these jobs.

        >>> ids = ArrayIds("ACME", r"[1-9][0-9]*(_[0-9]+)?", "{}_{}", "{}_[{}]")
        >>> ids.compress(["17_1", "18", "17_3", "17_2", "19_1"])
        ['18', '17_[1-3]', '19_1']
        """
        indices: dict[str, list[int]] = {}
        for native_id, array in self.arrays_of(native_ids).items():
            indices.setdefault(array, []).append(int(re.findall("[0-9]+", native_id)[-1]))
        single = [native_id for native_id in native_ids if self._joint not in native_id]
        return single + [text for array, it in indices.items() for text in self._texts(array, it)]

    def _texts(self, array: str, indices: Sequence[int]) -> list[str]:
        if len(indices) == 1:
            return self.element_ids(array, indices)
        ranges = write_indices(indices).split(",")
        step = self.most_ranges or len(ranges)
        parts = (ranges[start : start + step] for start in range(0, len(ranges), step))
        return [self.elements.format(array, ",".join(part)) for part in parts]

    @property
    def _joint(self) -> str:
        """The text between the array's id and the index."""
        return self.element.split("{}")[1]
