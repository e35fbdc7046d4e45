"""Job documents: what is written is what is read, and whatever is wrong is named with its place."""

from __future__ import annotations

import json
import textwrap
import types
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents import DOCUMENT, changed, read_quietly, system
from jpsi.document import documents
from jpsi.document.documents import read_document, write_document
from jpsi.model.dependencies import Dependency, DependencyKind
from jpsi.model.errors import DocumentWarning, InvalidJobException
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.serialization import encode
from jpsi.model.spec import (
    Bind,
    Container,
    JobAttributes,
    JobSpec,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from jpsi.model.spec_problems import problems
from strategies import HOSTILE, job_specs

# The examples are the same in every run, so that a failure is a change of the code.
FIXED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=60,
)

SPEC = JobSpec(
    "simulate",
    ["--fast"],
    resources=ResourceSpecV1(process_count=4, cpu_cores_per_process=2),
    attributes=JobAttributes(duration=timedelta(hours=1)),
)

#: Every field, each other than its default, and where it stands.
FULL_DOCUMENT = """\
version: 1
resources:
  - type: node
    count: 4
    with:
      - type: slot
        label: task
        count: 3
        with:
          - type: core
            count: 2
          - type: gpu
            count: 1
tasks:
  - command:
      - simulate
      - --fast
      - '1e3'
    slot: task
    count:
      total: 10
      site: 7
attributes:
  system:
    duration: 90.5
    environment:
      OMP_NUM_THREADS: '2'
      DISPLAY: null
    cwd: ~/run
    job:
      name: simulation
      campaign: '2026-01-01'
    jpsi:
      create_directory: true
      inherit_environment: false
      stdin_path: in.txt
      stdout_path: out.txt
      stderr_path: err.txt
      pre_launch: pre.sh
      post_launch: post.sh
      environment_setup:
        - module:gcc/12
        - source:/a b
      container:
        image: docker://debian:12
        runtime: podman
        binds:
          - source: /data
            target: /in
            read_only: true
        directory: /work
        gpu: true
        environment:
          PATH: /opt/bin:/bin
      launcher: srun
      stage_in:
        - source: https://example.org/a
          target: a
          mode: link
      stage_out:
        - source: b
          target: /archive/b
          mode: move
          flags:
            - if_present
            - on_error
      cleanup:
        - scratch
      cleanup_flags:
        - on_success
      resources:
        node_count: 4
        exclusive_node_use: true
        memory: 1073741824
      queue_name: debug
      project_name: 'on'
      reservation_id: '12'
      licenses: matlab:2
      qos: high
      gpu_type: a100
      mail: end:ann@example.org
      warn:
        - USR1
        - 60
      retry:
        out_of_memory: 3
        '75': 1
        grow_memory: 1.5
      after:
        - '4711'
        - job: '4712'
          kind: any
      custom_attributes:
        slurm.qos: high
  user:
    notes:
      - 1
      - null
"""
FULL = JobSpec(
    "simulate",
    ["--fast", "1e3"],
    name="simulation",
    directory=Path("~/run"),
    create_directory=True,
    inherit_environment=False,
    environment={"OMP_NUM_THREADS": "2", "DISPLAY": None},
    stdin_path=Path("in.txt"),
    stdout_path=Path("out.txt"),
    stderr_path=Path("err.txt"),
    pre_launch=Path("pre.sh"),
    post_launch=Path("post.sh"),
    environment_setup=["module:gcc/12", "source:/a b"],
    container=Container(
        "docker://debian:12",
        "podman",
        [Bind("/data", "/in", read_only=True)],
        directory="/work",
        gpu=True,
        environment={"PATH": "/opt/bin:/bin"},
    ),
    launcher="srun",
    resources=ResourceSpecV1.uneven(
        node_count=4,
        process_count=10,
        processes_per_node=3,
        cpu_cores_per_process=2,
        gpu_cores_per_process=1,
        exclusive_node_use=True,
        memory=2**30,
    ),
    attributes=JobAttributes(
        duration=timedelta(seconds=90.5),
        queue_name="debug",
        project_name="on",
        reservation_id="12",
        licenses="matlab:2",
        qos="high",
        gpu_type="a100",
        mail="end:ann@example.org",
        warn=("USR1", 60),
        retry={"out_of_memory": 3, 75: 1, "grow_memory": 1.5},
        after=["4711", Dependency("4712", DependencyKind.ANY)],
        custom_attributes={"slurm.qos": "high", "job.campaign": "2026-01-01", "count.site": 7},
        user={"notes": [1, None]},
    ),
    stage_in=[StageIn("https://example.org/a", Path("a"), StagingMode.LINK)],
    stage_out=[
        StageOut(Path("b"), "/archive/b", StageOutFlags.IF_PRESENT | StageOutFlags.ON_ERROR, StagingMode.MOVE)
    ],
    cleanup=[Path("scratch")],
    cleanup_flags=StageOutFlags.ON_SUCCESS,
)


# ------------------------------------------------------------------------------------ round trips


@pytest.mark.clause("document-form")
@FIXED
@given(spec=job_specs, as_json=st.booleans())
def test_a_written_spec_is_read_unchanged(spec: JobSpec, as_json: bool) -> None:
    text = write_document(spec, as_json=as_json)

    back = read_quietly(text)

    assert back == spec
    # 1 == True == 1.0, but readers of the document distinguish them.
    assert json.dumps(encode(back), sort_keys=True) == json.dumps(encode(spec), sort_keys=True)
    assert text.encode()


@FIXED
@given(spec=job_specs, as_json=st.booleans())
def test_a_document_survives_a_round_trip(spec: JobSpec, as_json: bool) -> None:
    text = write_document(read_quietly(write_document(spec)), as_json=as_json)

    assert write_document(read_quietly(text), as_json=as_json) == text


@pytest.mark.clause("document-job")
def test_every_field_has_its_place() -> None:
    with pytest.warns(DocumentWarning, match=r"tasks\[0\]\.count\.site"):
        read = read_document(FULL_DOCUMENT, lenient=True)

    assert read == FULL
    assert write_document(FULL) == FULL_DOCUMENT
    for value in (FULL, FULL.resources, FULL.attributes, FULL.container):
        assert value is not None
        defaults = Container("") if isinstance(value, Container) else type(value)()
        for name in attrs.fields_dict(type(value)):  # type: ignore[arg-type]  # ResourceSpec is abstract
            # a job that says its memory does not say that of a core
            if not name.startswith("memory_per_"):
                assert getattr(value, name) != getattr(defaults, name), name


def test_a_json_document_has_the_same_spec() -> None:
    text = write_document(FULL, as_json=True)

    assert read_quietly(text) == FULL
    assert list(json.loads(text)) == ["version", "resources", "tasks", "attributes"]


@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
@pytest.mark.parametrize(
    "spec",
    [
        JobSpec("a"),
        JobSpec("a", []),
        JobSpec("a", attributes=JobAttributes()),
        JobSpec("a", attributes=JobAttributes(duration=timedelta(0))),
        JobSpec("a", attributes=JobAttributes(duration=timedelta(minutes=10))),
        JobSpec("a", attributes=JobAttributes(duration=timedelta(microseconds=1))),
        JobSpec("a", attributes=JobAttributes(duration=timedelta(days=36_500))),
        JobSpec("a", attributes=JobAttributes(duration=timedelta(days=36_499, microseconds=1))),
        JobSpec("a", attributes=JobAttributes(user={}, custom_attributes={})),
        JobSpec(
            "a", attributes=JobAttributes(custom_attributes={"job.name": "b", "count.total": 3, "job.x": 1})
        ),
        JobSpec("a", attributes=JobAttributes(custom_attributes={"job": "b", "count": 1, "job.": "c"})),
        JobSpec("a", environment={}, stage_in=[], stage_out=[], cleanup=[]),
        JobSpec("a", cleanup_flags=StageOutFlags.NONE),
        JobSpec("a", resources=ResourceSpecV1()),
        JobSpec("a", resources=ResourceSpecV1(gpu_cores_per_process=0)),
    ],
    ids=lambda value: None if isinstance(value, bool) else repr(encode(value)),
)
def test_unset_and_empty_are_kept_apart(spec: JobSpec, as_json: bool) -> None:
    assert read_document(write_document(spec, as_json=as_json)) == spec


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_text_is_never_read_as_another_type(text: str) -> None:
    spec = JobSpec(
        "sh",
        [text, f"{text}x", f"x{text}"],
        name=text,
        environment={"A": text},
        attributes=JobAttributes(queue_name=text, user={text: [text, {text: text}]}),
    )

    assert read_document(write_document(spec)) == spec
    assert read_document(write_document(spec, as_json=True)) == spec


@pytest.mark.clause("document-duration")
def test_unset_duration_is_written_as_ten_minutes() -> None:
    text = write_document(JobSpec("a", attributes=JobAttributes(queue_name="q")))

    assert "    duration: 600\n" in text
    assert "    jpsi:\n      resources: null\n      queue_name: q\n      duration: null\n" in text


def test_text_is_readable_where_it_can_be() -> None:
    text = write_document(JobSpec("/bin/sh", ["-c", "date\necho $HOME\n", "été", "--n=3", "~/x"]))

    assert (
        "      - /bin/sh\n      - -c\n      - |\n        date\n        echo $HOME\n"
        "      - été\n      - --n=3\n      - ~/x\n"
    ) in text


def test_values_of_other_classes_are_written_as_plain_ones() -> None:
    """A tuple, a view of a mapping and a subclass of text are valid in a spec."""

    class Word(str):
        __slots__ = ()

    spec = JobSpec(
        "a",
        (Word("b"),),  # type: ignore[arg-type]  # valid by `problems`
        environment=types.MappingProxyType({"A": Word("c")}),  # type: ignore[arg-type]  # likewise
        attributes=JobAttributes(user={"d": Word("e")}),
    )
    plain = JobSpec("a", ["b"], environment={"A": "c"}, attributes=JobAttributes(user={"d": "e"}))

    assert problems(spec) == []
    assert read_document(write_document(spec)) == plain
    assert read_document(write_document(spec, as_json=True)) == plain


def test_shared_values_are_written_out() -> None:
    shared = ["a"]
    spec = JobSpec("a", attributes=JobAttributes(user={"x": shared, "y": shared}))

    assert "&" not in write_document(spec)
    assert read_document(write_document(spec)) == spec


def test_writing_an_invalid_spec_names_everything_that_is_wrong() -> None:
    spec = JobSpec(None, ["a\0"], resources=ResourceSpecV1(node_count=0))

    with pytest.raises(InvalidJobException, match="executable is missing") as raised:
        write_document(spec)

    assert list(raised.value.problems) == problems(spec)


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (JobAttributes(user={"a": 10**5000}), r"attributes\.user\.a is a number with too many digits"),
        (JobAttributes(user={"a": "\ud800"}), r"attributes\.user\.a contains a lone surrogate"),
        (
            JobAttributes(user={"\udfff": 1}),
            r"attributes\.user\['\\udfff'\] is a key that contains a lone surr",
        ),
    ],
    ids=["digits", "surrogate", "key"],
)
def test_writing_refuses_a_spec_that_could_not_be_read(attributes: JobAttributes, expected: str) -> None:
    with pytest.raises(InvalidJobException, match=expected):
        write_document(JobSpec("a", attributes=attributes))


@pytest.mark.parametrize("as_json", [False, True], ids=["yaml", "json"])
def test_nesting_up_to_the_limit_survives(as_json: bool) -> None:
    spec = JobSpec("a", attributes=JobAttributes(user={"a": nested(49)}))

    assert read_document(write_document(spec, as_json=as_json)) == spec


# ---------------------------------------------------------------------------------------- reading


@pytest.mark.clause("document-keys", "document-system-defaults")
def test_smallest_document_is_read() -> None:
    assert read_document(DOCUMENT) == SPEC


def test_document_in_the_documentation_is_read() -> None:
    assert documents.__doc__ is not None
    text = textwrap.dedent(documents.__doc__.split("\n\n")[1])

    spec = read_document(text)

    assert spec.name == "simulation"
    assert spec.attributes is not None
    assert spec.attributes.queue_name == "debug"


@pytest.mark.clause("document-duration-zero")
def test_duration_of_zero_is_unlimited() -> None:
    spec = read_document(changed("3600", "0"))

    assert spec.attributes == JobAttributes(duration=timedelta(0))


def test_shortest_duration_does_not_become_unlimited() -> None:
    spec = read_document(changed("3600", "1.0e-9"))

    assert spec.attributes == JobAttributes(duration=timedelta(microseconds=1))


@pytest.mark.clause("document-user")
def test_user_attributes_are_kept_unchanged() -> None:
    text = DOCUMENT + "  user:\n    b: [1, 1.5, true, null, 2026-01-01, '1', =]\n    a: {c: d}\n"

    attributes = read_document(text).attributes

    assert attributes is not None
    assert json.dumps(attributes.user) == (
        '{"b": [1, 1.5, true, null, "2026-01-01", "1", "="], "a": {"c": "d"}}'
    )


@pytest.mark.clause("document-environment")
def test_environment_value_null_unsets() -> None:
    assert read_document(system("environment: {A: null, B: '', C: x}")).environment == {
        "A": None,
        "B": "",
        "C": "x",
    }


def test_anchors_and_aliases_are_copied() -> None:
    spec = read_document(system("environment: &e {A: x}") + "  user: {a: *e, b: *e}\n")

    assert spec.environment == {"A": "x"}
    assert spec.attributes is not None
    assert spec.attributes.user == {"a": {"A": "x"}, "b": {"A": "x"}}
    assert spec.attributes.user["a"] is not spec.attributes.user["b"]


def as_json(text: str) -> str:
    return json.dumps(json.loads(write_document(read_document(text), as_json=True)), indent="\t")


def test_json_is_read_as_json() -> None:
    """YAML 1.1 knows no tabs, no surrogate pairs, no 1e3, and takes U+0085 for a line break."""
    text = as_json(DOCUMENT).replace('"--fast"', '"\\ud83d\\ude00", "a\x85b\x7f"').replace("3600", "3.6e3")

    spec = read_document(text)

    assert spec.arguments == ["😀", "a\x85b\x7f"]
    assert spec.attributes == JobAttributes(duration=timedelta(hours=1))


def test_surrogate_pairs_are_one_character_in_yaml_too() -> None:
    spec = read_document(changed("--fast", '"\\ud83d\\ude00"'))

    assert spec.arguments == ["😀"]


def test_byte_order_mark_is_ignored() -> None:
    assert read_document("\ufeff" + DOCUMENT) == SPEC
    assert read_document("\ufeff" + as_json(DOCUMENT)) == SPEC


def test_numbers_and_paths_that_are_added_later_are_text_in_the_document() -> None:
    spec: Any = JobSpec("a", [], environment={})

    spec.environment.update({"PATHS": Path("/b"), "COUNT": 1})
    spec.arguments.append(Path("/c"))
    written = read_document(write_document(spec))

    assert (written.environment, written.arguments) == ({"PATHS": "/b", "COUNT": "1"}, ["/c"])
