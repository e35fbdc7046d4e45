"""The rules for specs: they return all problems at once, and never raise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import (
    Bind,
    Container,
    JobAttributes,
    JobSpec,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
    copy_spec,
)
from jpsi.model.spec_problems import problems

NUL = "contains a NUL character, which no program can be given"
SURROGATE = "contains a lone surrogate, which no encoding can express"
NAMES = "names consist of letters, digits and _ and do not start with a digit"


def spec(**fields: object) -> JobSpec:
    """Return a spec that is valid except for these fields; they are assigned, as a program would do."""
    made = JobSpec("/bin/true")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def attributes(**fields: object) -> JobSpec:
    made = JobAttributes()
    for name, value in fields.items():
        setattr(made, name, value)
    return spec(attributes=made)


class Broken:
    """A value that has nothing to say for itself."""

    def __repr__(self) -> str:
        return "<broken>"


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.just(Path("a\0b")),
    st.just(Path("/x")),
    st.just(timedelta(-1)),
    st.just(Broken()),
    st.lists(st.none() | st.integers() | st.text(max_size=2) | st.just(Path("x")), max_size=3),
    st.dictionaries(st.integers() | st.text(max_size=2), st.none() | st.integers() | st.text(), max_size=3),
    st.just(JobAttributes),
    st.builds(StageIn, st.none() | st.text(max_size=2), st.none() | st.integers(), st.none()),
    st.lists(st.builds(StageOut, st.none() | st.just(Path("x")), st.integers(), st.none(), st.none())),
)
SPEC_FIELDS = [field.name for field in attrs.fields(JobSpec)]
ATTRIBUTE_FIELDS = [field.name for field in attrs.fields(JobAttributes)]


def complete() -> JobSpec:
    """Return a valid spec with every field set."""
    return JobSpec(
        "./prog",
        ["a", "", "${HOME}", "\udc81", "é\n"],
        name="name",
        directory=Path("~/runs"),
        create_directory=True,
        inherit_environment=False,
        environment={"A": "1", "_b2": None, "PATH": "${PATH}"},
        stdin_path=Path("in"),
        stdout_path=Path("~/out"),
        stderr_path=Path("/tmp/err"),
        pre_launch=Path("pre.sh"),
        post_launch=Path("~/post.sh"),
        launcher="mpirun",
        resources=ResourceSpecV1(node_count=1),
        attributes=JobAttributes(
            duration=timedelta(0),
            queue_name="short",
            account="p1",
            reservation_id="r",
            warn=("USR1", 60),
            retry={"timeout": 1, 75: 2},
            custom_attributes={"slurm.qos": "high", "x": [1, 2.5, None, True, {"a": []}]},
            user={"anything": {"goes": "here"}},
        ),
        stage_in=[StageIn("https://example.org/a", Path("a"), StagingMode.LINK)],
        stage_out=[StageOut(Path("b"), "b", StageOutFlags.ON_ERROR, StagingMode.MOVE)],
        cleanup=[Path("tmp")],
        cleanup_flags=StageOutFlags.NONE,
    )


@pytest.mark.parametrize(
    "valid",
    [
        JobSpec("/bin/true"),
        JobSpec("true", []),
        complete(),
        spec(arguments=("a", "b")),
        spec(environment=MappingProxyType({"A": "1"})),
        spec(directory=Path("~")),
    ],
    ids=["path", "name", "complete", "tuple", "read-only mapping", "home"],
)
def test_valid_spec_has_no_problems(valid: JobSpec) -> None:
    assert problems(valid) == []


@pytest.mark.clause("spec-directory")
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (None, "spec must be a JobSpec, not NoneType"),
        ({"executable": "x"}, "spec must be a JobSpec, not dict"),
        (JobSpec(), "executable is missing"),
        (JobSpec(""), "executable is missing"),
        (spec(executable=["ls"]), "executable must be text, not ['ls']"),
        (spec(executable="a\0b"), f"executable {NUL}"),
        (spec(executable="\ud800"), f"executable {SURROGATE}"),
        (spec(arguments="ab"), "arguments must be a list of texts, not 'ab'"),
        (spec(arguments=["a", 1]), "arguments[1] must be text, not 1"),
        (spec(arguments=["a\0"]), f"arguments[0] {NUL}"),
        (spec(arguments=["\ud83d"]), f"arguments[0] {SURROGATE}"),
        (spec(name=7), "name must be text, not 7"),
        (spec(launcher=b"x"), "launcher must be text, not b'x'"),
        (spec(inherit_environment=1), "inherit_environment must be True or False, not 1"),
        (spec(create_directory=None), "create_directory must be True or False, not None"),
        (spec(cleanup_flags=0), "cleanup_flags must be StageOutFlags, not 0"),
        (spec(directory=5), "directory must be a path, not 5"),
        (spec(directory="runs"), "directory must be absolute or start with ~/, not 'runs'"),
        (spec(directory="~user/x"), "directory must be absolute or start with ~/, not '~user/x'"),
        (spec(stdin_path=PurePosixPath("x")), "stdin_path must be a path, not PurePosixPath('x')"),
        (spec(stdout_path="a\0b"), f"stdout_path {NUL}"),
        (spec(pre_launch=["x"]), "pre_launch must be a path, not ['x']"),
        (spec(environment=[("A", "1")]), "environment must be a mapping of names to texts, not [('A', '1')]"),
        (spec(environment={"A": [1]}), "environment['A'] must be text, not [1]"),
        (spec(environment={"A": "\0"}), f"environment['A'] {NUL}"),
        (spec(environment={"1A": ""}), f"environment has the name '1A'; {NAMES}"),
        (spec(environment={"A-B": ""}), f"environment has the name 'A-B'; {NAMES}"),
        (spec(environment={"": ""}), f"environment has the name ''; {NAMES}"),
        (spec(environment={"A\n": ""}), f"environment has the name 'A\\n'; {NAMES}"),
        (spec(environment={"É": ""}), f"environment has the name 'É'; {NAMES}"),
        (spec(environment={1: ""}), f"environment has the name 1; {NAMES}"),
        (spec(resources="2 nodes"), "resources must be a ResourceSpec, not str"),
        (spec(attributes={"queue": "x"}), "attributes must be JobAttributes, not {'queue': 'x'}"),
        (attributes(duration=60), "attributes.duration must be a timedelta, not 60"),
        (
            attributes(duration=timedelta(-1)),
            "attributes.duration must not be negative, but is -1 day",
        ),
        *(
            (
                attributes(warn=warn),
                (
                    "attributes.warn must be one of HUP, INT, QUIT, TERM, ALRM, USR1, USR2, XCPU, "
                    f"and a number of seconds over 0, as in [USR1, 60], not {[*warn]}"
                ),
            )
            for warn in [("KILL", 60), ("USR1", 0), ("USR1",), ["USR1", "60"], ("USR1", float("nan"))]
        ),
        *(
            (
                spec(environment_setup=[text]),
                (
                    "environment_setup[0] must be module:NAME, conda:NAME, venv:DIRECTORY, spack:SPEC or "
                    f"source:FILE, not {text!r}"
                ),
            )
            for text in ("gcc/12", "modules:gcc", "module:", "module:--help", "source:a\nb")
        ),
        (spec(environment_setup="module:gcc"), "environment_setup must be a list of texts, not 'module:gcc'"),
        (spec(container="debian"), "container must be a Container, not 'debian'"),
        *(
            (
                spec(container=Container(it)),
                f"container.image must be a path, with ${{HOME}} for ~, or the name of an image, not {it!r}",
            )
            for it in ("", "--a", "~/a.sif")
        ),
        (
            spec(container=Container("a", binds=["/a:/b:/c"])),
            "container.binds[0] must be SOURCE[:TARGET][:ro], not '/a:/b:/c'",
        ),
        (
            spec(container=Container("a", binds=["b:/in"])),
            "container.binds[0].source must be absolute, or begin with a variable such as ${HOME}, not 'b'",
        ),
        (spec(container=Container("a", gpu=1)), "container.gpu must be True or False, not 1"),
        (
            spec(container=Container("a", environment={"É": ""})),
            f"container.environment has the name 'É'; {NAMES}",
        ),
        (attributes(retry=3), "attributes.retry must be a mapping, not 3"),
        (attributes(warn="USR1"), "attributes.warn must be a signal and seconds, not 'USR1'"),
        (attributes(duration=timedelta.max), "attributes.duration is over 36500 days; zero means no limit"),
        (attributes(queue_name=1), "attributes.queue_name must be text, not 1"),
        (attributes(project_name="\0"), f"attributes.project_name {NUL}"),
        (attributes(custom_attributes=[1]), "attributes.custom_attributes must be a mapping, not [1]"),
        (
            attributes(custom_attributes={1: 2}),
            "attributes.custom_attributes has the key 1; keys must be text",
        ),
        (
            attributes(custom_attributes={"a": [{"b": {1, 2}}]}),
            "attributes.custom_attributes['a'][0]['b'] must consist of what JSON can express, not {1, 2}",
        ),
        (
            attributes(user={"a": float("nan")}),
            "attributes.user['a'] is nan, which a job document cannot express",
        ),
        (spec(stage_in=StageIn("a", Path("b"))), "stage_in must be a list of StageIn, not "),
        (spec(stage_in=["a"]), "stage_in[0] must be a StageIn, not 'a'"),
        (spec(stage_in=[StageIn(1, Path("b"))]), "stage_in[0].source must be text, not 1"),  # type: ignore[arg-type]
        (
            spec(stage_out=[StageOut(Path("b"), "a", mode="copy")]),  # type: ignore[arg-type]
            "stage_out[0].mode must be a StagingMode, not 'copy'",
        ),
        (
            spec(stage_out=[StageOut(Path("b"), "a", flags=3)]),  # type: ignore[arg-type]
            "stage_out[0].flags must be StageOutFlags, not 3",
        ),
        (spec(cleanup=["tmp"]), "cleanup[0] must be a Path, not 'tmp'"),
        (spec(cleanup=[Path("a\0")]), f"cleanup[0] {NUL}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_field_is_named(wrong: object, problem: str) -> None:
    (found,) = problems(wrong)

    assert found.startswith(problem)


def test_everything_wrong_is_named_at_once() -> None:
    wrong = spec(
        executable="",
        arguments=[1, 2],
        name=3,
        directory="x",
        environment={"1": "", "A": [4]},
        resources=ResourceSpecV1(node_count=0),
        attributes=JobAttributes(duration=timedelta(-1)),
        cleanup=[5],
    )

    places = ["executable", "arguments[0]", "arguments[1]", "name", "directory", "environment",
              "environment['A']", "resources.node_count", "attributes.duration", "cleanup[0]"]  # fmt: skip
    assert places == [problem.partition(" ")[0] for problem in problems(wrong)]


@given(st.dictionaries(st.sampled_from(SPEC_FIELDS), anything, min_size=1))
def test_no_assignment_makes_the_rules_raise(fields: dict[str, Any]) -> None:
    found = problems(spec(**fields))

    assert all(isinstance(problem, str) and problem for problem in found)


@given(st.dictionaries(st.sampled_from(ATTRIBUTE_FIELDS), anything, min_size=1))
def test_no_assignment_to_attributes_makes_the_rules_raise(fields: dict[str, Any]) -> None:
    found = problems(attributes(**fields))

    assert all(isinstance(problem, str) and problem for problem in found)


def recursive_values() -> Iterator[tuple[str, Any]]:
    custom: dict[str, Any] = {}
    custom["self"] = custom
    yield "a mapping in itself", custom
    deep: Any = None
    for _ in range(2_000):
        deep = [deep]
    yield "very deep", {"a": deep}


@pytest.mark.parametrize("custom", [pytest.param(value, id=name) for name, value in recursive_values()])
def test_attribute_that_json_cannot_express_for_its_depth_is_named(custom: dict[str, Any]) -> None:
    (found,) = problems(attributes(custom_attributes=custom))

    assert found.startswith("attributes.custom_attributes")


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(JobSpec)])
def test_every_field_of_a_spec_is_checked(name: str) -> None:
    assert any(name in it for it in problems(spec(**{name: Broken()})))


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(JobAttributes)])
def test_every_attribute_is_checked(name: str) -> None:
    """An attribute without a rule would accept any value."""
    assert any(name in it for it in problems(attributes(**{name: Broken()})))


def test_numbers_and_paths_in_the_environment_and_paths_in_arguments_become_text() -> None:
    spec = JobSpec(
        "/bin/a", [Path("/in"), "b"], environment={"N": 1, "F": 0.5, "B": True, "P": Path("/p"), "U": None}
    )

    assert spec.arguments == ["/in", "b"]
    assert spec.environment == {"N": "1", "F": "0.5", "B": "True", "P": "/p", "U": None}


def test_numbers_and_paths_that_are_added_later_become_text_at_submit() -> None:
    spec = JobSpec("/bin/a", [], environment={})
    assert spec.arguments is not None
    assert spec.environment is not None

    spec.arguments.append(Path("/in"))  # type: ignore[arg-type]
    spec.environment["N"] = 1  # type: ignore[assignment]

    assert problems(spec) == []
    assert copy_spec(spec) == JobSpec("/bin/a", ["/in"], environment={"N": "1"})


@pytest.mark.parametrize("mail", ["", "a b", "begin;end:ann", "start:ann", "-x", "ann@a,bob@b", "a:b:c"])
def test_mail_of_another_form_is_refused(mail: str) -> None:
    with pytest.raises(ValueError, match=r"attributes\.mail must be an address, or begin,end,fail"):
        JobAttributes(mail=mail).mail_request()
    (problem,) = problems(JobSpec("true", attributes=JobAttributes(mail=mail)))
    assert problem.startswith("attributes.mail must be an address, or begin,end,fail")


def test_a_mail_of_any_end_is_one_of_a_failure() -> None:
    assert JobAttributes(mail="fail,end,begin:ann").mail_request() == (("begin", "end"), "ann")


def test_equal_stagings_are_one_in_a_set() -> None:
    assert len({StageIn("a", "b"), StageIn("a", "b")}) == 1
    assert len({StageOut("a", "b"), StageOut("a", "b")}) == 1


def test_a_bind_is_also_a_text_of_source_target_and_mode() -> None:
    texts = ["/a", "/a:/b", "/a:ro", "/a:/b:ro", "/a:rw", "${HOME}:/b:rw"]

    binds = Container("image", binds=texts).binds

    assert binds == [
        *(Bind("/a", "/a"), Bind("/a", "/b"), Bind("/a", "/a", read_only=True)),
        *(Bind("/a", "/b", read_only=True), Bind("/a"), Bind("${HOME}", "/b")),
    ]
    assert copy_spec(spec(container=Container("image", binds=texts))).container == Container(
        "image", binds=binds
    )
