from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from jpsi_engine import array_specs
from jpsi_engine.array_expansion import (
    ARRAY,
    MET,
    array_id,
    array_index,
    at_a_time,
    repeated_specs,
    single_spec,
)


def test_each_element_has_its_index_and_the_id_of_the_array() -> None:
    spec = jpsi.JobSpec(
        "run",
        stdout_path=Path("out-%a"),
        environment={"A": "${JPSI_ARRAY_INDEX} of ${JPSI_ARRAY_COUNT}", "B": "$${JPSI_ARRAY_INDEX}"},
    )
    numbered = {"COUNT": "4", "MIN": "0", "MAX": "9", "STEP": "2"}

    found = array_specs(spec, "0-4:2,9%2")

    assert [it.environment for it in found] == [
        {
            "A": f"{index} of 4",
            "B": "$${JPSI_ARRAY_INDEX}",
            "JPSI_ARRAY_INDEX": str(index),
            **{f"JPSI_ARRAY_{name}": value for name, value in numbered.items()},
        }
        for index in (0, 2, 4, 9)
    ]
    assert [str(it.stdout_path) for it in found] == ["out-0", "out-2", "out-4", "out-9"]
    assert len({array_id(it) for it in found}) == 1
    assert {at_a_time(it) for it in found} == {2}
    assert spec.attributes == jpsi.JobAttributes()


def test_a_spec_may_have_the_indices() -> None:
    spec = jpsi.JobSpec(
        "run", attributes=jpsi.JobAttributes(custom_attributes={ARRAY: "1-3", "slurm.qos": "a"})
    )

    found = array_specs(spec)

    assert len(found) == 3
    assert found[0].attributes.custom_attributes == {"slurm.qos": "a", "jpsi.array_id": array_id(found[0])}
    assert at_a_time(found[0]) is None
    assert array_specs(jpsi.JobSpec("run")) == [jpsi.JobSpec("run")]


def test_a_change_to_one_element_leaves_the_others_alone() -> None:
    first, second = array_specs(jpsi.JobSpec("run"), "1-2")

    first.attributes.after = [jpsi.Dependency("17")]
    first.attributes.set_custom_attribute("slurm.qos", "a")

    assert second.attributes.after is None
    assert second.attributes.custom_attributes == {"jpsi.array_id": array_id(second)}


@pytest.mark.parametrize("text", ["1-2%2", "1-2%8"])
def test_a_limit_that_all_elements_keep_is_none(text: str) -> None:
    assert {at_a_time(it) for it in array_specs(jpsi.JobSpec("run"), text)} == {None}


@pytest.mark.parametrize("text", ["", "x", "5-2", "1--3", "%3"])
def test_a_text_without_indices_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no indices of an array"):
        array_specs(jpsi.JobSpec("run"), text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1-999999999", "names more than 1,000,000 indices"),
        ("0-999999,1000000-2000000%5", "names more than 1,000,000 indices"),
        ("1-3%0", "lets no job run at a time"),
    ],
)
def test_a_number_out_of_bounds_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        array_specs(jpsi.JobSpec("run"), text)


def test_an_array_is_no_single_job() -> None:
    spec = jpsi.JobSpec("/bin/true", attributes=jpsi.JobAttributes(custom_attributes={ARRAY: "1-3"}))

    with jpsi.JobExecutor("local") as executor, pytest.raises(jpsi.InvalidJobException, match="several jobs"):
        executor.submit(jpsi.Job(spec))


def test_an_array_of_one_is_a_job_with_an_index() -> None:
    (found,) = array_specs(jpsi.JobSpec("run"), "13")

    assert array_id(found) is None
    assert array_index(found.environment) == 13


@pytest.mark.parametrize("value", ["", "x", "-1", "1" * 19, 13])
def test_a_variable_that_is_no_index_is_none(value: object) -> None:
    assert array_index({"JPSI_ARRAY_INDEX": value}) is None


def test_repeated_elements_are_an_array_of_their_own() -> None:
    first, _, third = array_specs(jpsi.JobSpec("run"), "0-2%2")
    alone = array_specs(jpsi.JobSpec("run"), "5-6")[1]
    third.attributes.after = [jpsi.Dependency("17")]

    found = repeated_specs({"a": first, "b": third, "c": alone})

    assert [array_index(it.environment) for it in found] == [0, 2, 6]
    assert array_id(found[0]) == array_id(found[1]) not in {None, array_id(first)}
    assert [at_a_time(it) for it in found] == [None] * 3
    assert found[2].attributes.custom_attributes == {"jpsi.repeats": "c"}
    assert [it.attributes.after for it in found] == [None] * 3
    assert third.attributes.after == [jpsi.Dependency("17")]


def test_repeated_elements_keep_the_limit_of_their_array() -> None:
    found = repeated_specs(dict(zip("abc", array_specs(jpsi.JobSpec("run"), "0-2%2"), strict=True)))

    assert {at_a_time(it) for it in found} == {2}


def test_the_spec_of_a_single_job_belongs_to_no_array() -> None:
    first, second = array_specs(jpsi.JobSpec("run"), "7-8")
    (repeated, *_) = repeated_specs({"a": first, "b": second})
    repeated.attributes.set_custom_attribute(MET, "ok:c")

    assert single_spec(repeated) == jpsi.JobSpec("run", environment=first.environment)
