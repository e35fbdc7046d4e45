"""Canonical keys, which are equal exactly if the meaning is equal."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jpsi_records.errors import InvalidRequestError
from jpsi_records.model.computation import Computation, Topology
from jpsi_records.model.mounts import write_mount
from jpsi_records.model.request_spec import read_request_spec
from jpsi_records.reuse.canonical_key import VERSION, differences, fingerprint, preimage, recalled
from spec_strategies import COMPUTATIONS, DEFAULTS, PLACEMENTS


def of(document: dict[str, Any]) -> str:
    """Return the canonical key with mounts as they are; resolving them has tests of its own."""
    computation = read_request_spec(document).computation
    return preimage(computation, {at: write_mount(it) for at, it in computation.mounts.items()})


def shuffled(value: Any, random: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = [(key, shuffled(it, random)) for key, it in value.items()]
    random.shuffle(items)
    return dict(items)


@given(COMPUTATIONS, st.randoms(), st.sets(st.sampled_from(sorted(DEFAULTS))))
def test_the_order_of_keys_and_explicit_defaults_do_not_matter(
    document: dict[str, Any], random: Any, written: set[str]
) -> None:
    fuller = {**{key: DEFAULTS[key] for key in written}, **document}

    assert of(shuffled(fuller, random)) == of(document)


@given(COMPUTATIONS, PLACEMENTS)
def test_placement_is_no_part_of_it(document: dict[str, Any], placement: dict[str, Any]) -> None:
    assert of({**document, "placement": placement}) == of(document)


@given(COMPUTATIONS, COMPUTATIONS)
def test_two_keys_are_equal_exactly_if_the_meaning_is_equal(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert (of(one) == of(other)) is (meaning(one) == meaning(other))


def meaning(document: dict[str, Any]) -> Computation:
    """Return the members of a computation, without process counts that do not matter."""
    computation = read_request_spec(document).computation
    if computation.topology is Topology.ANY:
        return attrs.evolve(computation, processes=1, threads=1)
    return computation


MEMBERS = [
    *("command", "environment", "cwd", "mounts", "output_path", "output_globs"),
    *("processes", "threads", "topology", "purity"),
]


@given(COMPUTATIONS, st.sampled_from(MEMBERS), st.data())
def test_any_change_of_meaning_changes_the_fingerprint(
    document: dict[str, Any], member: str, data: Any
) -> None:
    other = data.draw(COMPUTATIONS)
    changed = {**document, member: other.get(member, DEFAULTS.get(member))}
    assume(is_valid(changed))
    assume(meaning(changed) != meaning(document))

    assert fingerprint(of(changed)) != fingerprint(of(document))


def is_valid(document: dict[str, Any]) -> bool:
    try:
        read_request_spec(document)
    except InvalidRequestError:
        return False
    return True


def test_a_change_of_each_member_is_tested() -> None:
    """The member of the image is tested with containers."""
    assert {*MEMBERS, "container_image"} == {it.name for it in attrs.fields(Computation)}


@given(COMPUTATIONS, COMPUTATIONS)
def test_differences_are_reported_exactly_if_keys_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (differences(of(one), of(other)) == []) is (of(one) == of(other))


def test_a_pre_image_is_json_that_names_its_version() -> None:
    text = of({"command": ["true"]})

    assert json.loads(text) == {"v": VERSION, "command": ["true"]}
    assert recalled(text)["cwd"] == "/"


def test_the_fingerprint_of_a_version_never_changes() -> None:
    """Otherwise no recorded execution would be found."""
    text = of({"command": ["sort", "/in"], "environment": {"LC_ALL": "C"}, "processes": 2})

    assert fingerprint(text) == "sha256:86e988512e89f872e50ffe09fdcc1fb2001f3947af1ed8c1f70b7ed556b9e3bf"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"environment": {"A": "1"}}, {"environment": {"A": "2"}}, 'environment.A: "1", there "2"'),
        ({"environment": {"A": None}}, {}, "environment.A: null, there nothing"),
        ({"command": ["a", "b"]}, {"command": ["a", "c"]}, 'command[1]: "b", there "c"'),
        ({"command": ["a"]}, {"command": ["a", "c"]}, 'command: ["a"], there ["a","c"]'),
        ({"processes": 2}, {}, "processes: 2, there 1"),
    ],
    ids=str,
)
def test_a_difference_names_the_place_and_both_sides(
    one: dict[str, Any], other: dict[str, Any], expected: str
) -> None:
    base = {"command": ["true"]}

    assert [str(it) for it in differences(of({**base, **one}), of({**base, **other}))] == [expected]
