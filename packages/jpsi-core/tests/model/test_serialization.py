"""Specs as plain values: what goes through JSON comes back the same."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.resources import ResourceSpecV1
from jpsi.model.serialization import (
    decode,
    decode_attributes,
    decode_flags,
    decode_resources,
    encode,
    encode_attributes,
    encode_flags,
    encode_resources,
)
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.spec_problems import problems

# What an operating system can hold in a name or argument: any bytes but NUL.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6) | st.binary(
    max_size=6
).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,3}", fullmatch=True)
paths = texts.map(Path)
flags = st.sets(st.sampled_from(["if_present", "on_success", "on_error", "on_cancel"])).map(
    lambda chosen: decode_flags(sorted(chosen))
)
modes = st.sampled_from(StagingMode)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
mappings = st.dictionaries(texts, json_values, max_size=2)
resources = st.builds(
    ResourceSpecV1,
    node_count=st.none() | st.integers(1, 9),
    processes_per_node=st.none() | st.integers(1, 9),
    cpu_cores_per_process=st.none() | st.integers(1, 9),
    gpu_cores_per_process=st.none() | st.integers(0, 9),
    exclusive_node_use=st.booleans(),
    memory=st.none() | st.integers(2**20, 2**60),
)
durations = st.timedeltas(timedelta(0), timedelta(days=36_500))
attributes = st.builds(
    JobAttributes,
    duration=st.none() | durations,
    **{name: st.none() | texts for name in JobAttributes.text_names() if name != "mail"},
    mail=st.none() | st.sampled_from(["ann", "begin,fail:ann@example.org"]),
    custom_attributes=st.none() | mappings,
    user=st.none() | mappings,
)
specs = st.builds(
    JobSpec,
    texts.filter(bool),
    st.none() | st.lists(texts, max_size=3),
    name=st.none() | texts,
    directory=st.none() | paths.map(lambda path: "/" / path),
    create_directory=st.booleans(),
    inherit_environment=st.booleans(),
    environment=st.none() | st.dictionaries(names, st.none() | texts, max_size=3),
    stdin_path=st.none() | paths,
    stdout_path=st.none() | paths,
    stderr_path=st.none() | paths,
    pre_launch=st.none() | paths,
    post_launch=st.none() | paths,
    launcher=st.none() | texts,
    resources=st.none() | resources,
    attributes=st.none() | attributes,
    stage_in=st.none() | st.lists(st.builds(StageIn, texts, paths, modes), max_size=2),
    stage_out=st.none() | st.lists(st.builds(StageOut, paths, texts, flags, modes), max_size=2),
    cleanup=st.none() | st.lists(paths, max_size=2),
    cleanup_flags=flags,
)


@given(specs)
def test_a_spec_survives_a_round_trip_through_json(spec: JobSpec) -> None:
    assert problems(spec) == []

    assert decode(json.loads(json.dumps(encode(spec)))) == spec


@given(attributes)
def test_attributes_survive_a_round_trip_through_json(value: JobAttributes) -> None:
    assert decode_attributes(json.loads(json.dumps(encode_attributes(value)))) == value


@given(resources)
def test_resources_survive_a_round_trip_through_json(value: ResourceSpecV1) -> None:
    assert decode_resources(json.loads(json.dumps(encode_resources(value)))) == value


@given(flags)
def test_flags_survive_a_round_trip_through_their_names(value: StageOutFlags) -> None:
    assert decode_flags(encode_flags(value)) == value


@pytest.mark.parametrize(
    "spec",
    [JobSpec("x"), JobSpec("x", []), JobSpec("x", environment={}), JobSpec("x", resources=ResourceSpecV1())],
    ids=["unset", "no arguments", "no environment", "empty resources"],
)
def test_empty_is_not_unset(spec: JobSpec) -> None:
    assert decode(encode(spec)) == spec


@pytest.mark.parametrize(
    "duration",
    [timedelta(0), timedelta(microseconds=1), timedelta(days=36_500)],
    ids=["none", "least", "most"],
)
def test_an_extreme_duration_survives_a_round_trip(duration: timedelta) -> None:
    value = JobAttributes(duration=duration)

    assert decode_attributes(encode_attributes(value)) == value


def test_only_values_that_differ_from_their_defaults_are_written() -> None:
    assert encode(JobSpec("x", cleanup_flags=StageOutFlags.ALWAYS, inherit_environment=True)) == {
        "executable": "x"
    }


def test_paths_flags_and_modes_are_plain() -> None:
    spec = JobSpec(
        "x",
        directory=Path("/a"),
        stage_out=[StageOut(Path("b"), "c", StageOutFlags.NONE, StagingMode.MOVE)],
        cleanup=[Path("d")],
        cleanup_flags=StageOutFlags.ON_ERROR,
    )

    assert encode(spec) == {
        "executable": "x",
        "directory": "/a",
        "stage_out": [{"source": "b", "target": "c", "mode": "move", "flags": []}],
        "cleanup": ["d"],
        "cleanup_flags": ["on_error"],
    }


def test_unknown_flag_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'never' is not one of if_present, on_success, on_error, on_cancel"):
        decode_flags(["never"])


def test_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        decode({"executable": "x", "colour": "red"})
