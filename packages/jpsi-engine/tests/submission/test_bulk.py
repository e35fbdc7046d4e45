"""The grouping of jobs into arrays: every job once, none with one that differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import jpsi
from jpsi import JobSpec
from jpsi.model import serialization
from jpsi.model.serialization import FREE, shape
from jpsi_engine.submission.bulk import group_equal
from jpsi_engine.submission.submission import common_entries
from jpsi_testing import specs

KEYS = st.lists(st.sampled_from("abc"), max_size=40)


@given(keys=KEYS, largest=st.integers(1, 12))
def test_every_position_is_in_one_chunk(keys: list[str], largest: int) -> None:
    assert sorted(it for chunk in group_equal(keys, largest) for it in chunk) == list(range(len(keys)))


@given(keys=KEYS, largest=st.integers(1, 12))
def test_a_chunk_is_of_one_key_and_not_too_large(keys: list[str], largest: int) -> None:
    for chunk in group_equal(keys, largest):
        assert 0 < len(chunk) <= largest
        assert len({keys[it] for it in chunk}) == 1
        assert chunk == sorted(chunk)


@given(keys=KEYS, largest=st.integers(1, 12))
def test_the_number_of_chunks_is_minimal(keys: list[str], largest: int) -> None:
    fewest = sum(-(-keys.count(key) // largest) for key in set(keys))

    assert len(group_equal(keys, largest)) == fewest


@given(spec=specs(heterogeneous=True), other=specs(heterogeneous=True))
def test_free_fields_change_no_shape_and_others_do(spec: JobSpec, other: JobSpec) -> None:
    mine, its = serialization.encode(spec), serialization.encode(other)
    free = {name: value for name, value in its.items() if name in FREE}
    bound = {name: value for name, value in mine.items() if name not in FREE}

    assert shape(bound | free) == shape(mine)
    if bound != {name: value for name, value in its.items() if name not in FREE}:
        assert shape(its) != shape(mine)


def test_free_fields_are_fields() -> None:
    assert {field.name for field in jpsi.JobSpec.__attrs_attrs__} >= FREE  # type: ignore[attr-defined]  # attrs


@given(plains=st.lists(specs().map(serialization.encode), min_size=1, max_size=5))
def test_common_and_own_fields_together_are_the_spec(plains: list[dict[str, object]]) -> None:
    shared = common_entries(plains)

    for it in plains:
        own = {name: value for name, value in it.items() if name not in shared}
        assert {**shared, **own} == it
    for name in set.intersection(*map(set, plains)):
        assert (name in shared) == all(it[name] == plains[0][name] for it in plains)
