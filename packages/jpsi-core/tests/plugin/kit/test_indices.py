"""Indices of elements: what is written can be read."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin.kit.indices import read_indices, write_indices


@given(indices=st.sets(st.integers(0, 200), min_size=1))
def test_what_is_written_is_read(indices: set[int]) -> None:
    text = write_indices(indices)

    assert [index for part in read_indices(text) for index in part] == sorted(indices)


@given(indices=st.sets(st.integers(0, 200), min_size=1))
def test_what_is_written_has_no_two_ranges_that_touch(indices: set[int]) -> None:
    parts = read_indices(write_indices(indices))

    assert all(before[-1] + 1 < after[0] for before, after in itertools.pairwise(parts))


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2", "1-2:0", "1 2", "1-3%2", "99999999999"])
def test_what_names_no_indices_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no indices"):
        read_indices(text)
