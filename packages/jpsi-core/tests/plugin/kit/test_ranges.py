"""Lists of nodes and of indices: what is written can be read."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin.kit.ranges import expand_hostlist, read_indices, write_indices


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("node01", ("node01",)),
        ("node[01-02]", ("node01", "node02")),
        ("a,b[1,3-4],c", ("a", "b1", "b3", "b4", "c")),
        ("r[0-1]n[1-2]", ("r0n1", "r0n2", "r1n1", "r1n2")),
        ("n[098-101]", ("n098", "n099", "n100", "n101")),
        ("n[1-999999999999]", ("n1-999999999999",)),
        ("n[1", ("n", "1")),
    ],
)
def test_lists_of_nodes(text: str, expected: tuple[str, ...]) -> None:
    assert expand_hostlist(text) == expected


@given(st.text(alphabet="an0123456789[]-,", max_size=20))
def test_any_list_of_nodes_is_read(text: str) -> None:
    assert all(expand_hostlist(text))


@given(indices=st.sets(st.integers(0, 200), min_size=1))
def test_ranges_survive_a_round_trip(indices: set[int]) -> None:
    text = write_indices(indices)

    assert [index for part in read_indices(text) for index in part] == sorted(indices)


@given(indices=st.sets(st.integers(0, 200), min_size=1))
def test_written_ranges_do_not_touch(indices: set[int]) -> None:
    parts = read_indices(write_indices(indices))

    assert all(before[-1] + 1 < after[0] for before, after in itertools.pairwise(parts))


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2", "1-2:0", "1 2", "1-3%2", "99999999999"])
def test_text_without_indices_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no indices"):
        read_indices(text)
