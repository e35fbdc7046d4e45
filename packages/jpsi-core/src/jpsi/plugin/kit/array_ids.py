"""Reads and writes native ids of arrays and their elements, for the modules `native_ids` of backends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from jpsi.contract import hookimpl
from jpsi.plugin.kit.command_results import IdForm
from jpsi.plugin.kit.ranges import read_indices, write_indices


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
