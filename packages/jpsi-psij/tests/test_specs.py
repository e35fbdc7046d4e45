"""Specs, attributes, resources and states as psij has them, and their text."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
import jpsi_psij.serialize
import psij
import psij.serialize
from jpsi_psij.job_spec import spec_for_jpsi
from psij import Export, Import, JobAttributes, JobSpec, JobState, ResourceSpec, ResourceSpecV1
from psij.serialize import JSONSerializer
from psij.staging import URI, StageIn, StageOut, StageOutFlags


def test_psij_and_jpsi_psij_are_the_same_modules() -> None:
    assert psij.serialize is jpsi_psij.serialize
    assert psij.JobSpec is jpsi_psij.JobSpec


def test_type_checkers_find_each_module_of_psij() -> None:
    """`psij` has its modules only when it runs."""
    source = Path(jpsi_psij.__file__).parent
    modules = {it.relative_to(source).with_suffix("") for it in source.rglob("*.py")} - {Path("__init__")}

    stubs = source.parent / "psij"
    assert modules == {it.relative_to(stubs).with_suffix("") for it in stubs.rglob("*.pyi")}
    for module in modules:
        name = ".".join(["jpsi_psij", *module.parts]).removesuffix(".__init__")
        assert (stubs / module).with_suffix(".pyi").read_text() == f"from {name} import *\n"


def test_a_clash_with_psij_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(jpsi_psij.__file__).parent.parent / "psij" / "__init__.py"
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: name)

    with pytest.raises(ImportError, match="pip uninstall psij-python"):
        exec(compile(path.read_text(), path, "exec"), {"__name__": "clash"})


def test_environment_is_checked() -> None:
    with pytest.raises(TypeError, match="environment has the name 1"):
        JobSpec(environment={1: "a"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"environment\['A'\] must be text, a number or a path, not None"):
        JobSpec(environment={"A": None})
    spec = JobSpec("/bin/true", environment={"A": 42, "P": Path("/p")})
    assert spec.environment == {"A": "42", "P": "/p"}
    spec.environment["B"] = [2]  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"environment\['B'\]"):
        spec_for_jpsi(spec, "local")


@pytest.mark.parametrize(
    "name", ["directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch"]
)
def test_text_becomes_a_path(name: str) -> None:
    spec = JobSpec(**{name: "a/b"})  # type: ignore[arg-type]

    assert getattr(spec, name) == Path("a/b")


def test_defaults_are_those_of_psij() -> None:
    spec = JobSpec("/bin/a", ["b"], "/dir")

    assert (spec.name, spec.resources, spec.directory) == ("/bin/a", None, Path("/dir"))
    assert spec.attributes == JobAttributes(timedelta(minutes=10))
    assert spec_for_jpsi(spec, "slurm").launcher == "single"
    assert spec_for_jpsi(spec, "local").attributes.duration is None


@pytest.mark.parametrize("part", ["JobSpec", "JobAttributes", "ResourceSpecV1"])
def test_unknown_attributes_are_tolerated_with_one_warning(part: str) -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1())
    for it in (spec, spec.attributes, spec.resources):
        if type(it).__name__ == part:
            it.wish = 1  # type: ignore[union-attr]

    with pytest.warns(UserWarning, match=f"{part} has no attribute wish"):
        spec_for_jpsi(spec, "local")
    spec_for_jpsi(spec, "local")  # a second warning would be an error


def test_custom_attributes_get_the_names_of_jpsi() -> None:
    custom = {"pbs_classic.a": 1, "slurm_single.b": 2, "lsf.c": "", "plain": 4}
    attributes = JobAttributes(custom_attributes=custom)
    attributes.set_custom_attribute("pbspro.d", 5)

    found = spec_for_jpsi(JobSpec("a", attributes=attributes), "slurm").attributes.custom_attributes

    assert found == {"torque.a": 1, "slurm.b": 2, "lsf.c": True, "plain": 4, "pbs.d": 5}
    assert attributes.get_custom_attribute("pbspro.d") == 5
    assert attributes.get_custom_attribute("other") is None


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(90, 90), ("90", 5400), ("1:30", 5400), ("1:30:05", 5405), ("90 s", 90), ("2h", 7200), ("600.0 s", 600)],
)
def test_durations_may_be_numbers_and_text(given: float | str, seconds: int) -> None:
    assert JobAttributes(given).duration == timedelta(seconds=seconds)


def test_a_wrong_duration_is_named() -> None:
    with pytest.raises(ValueError, match="'soon' is no duration"):
        JobAttributes("soon")


@pytest.mark.parametrize("counts", [(2, 3, None), (None, 3, 2), (2, 8, 2)])
def test_contradicting_counts_are_refused(counts: tuple[int | None, int, int | None]) -> None:
    with pytest.raises(psij.InvalidJobException, match=r"process_count [38] is no"):
        ResourceSpecV1(*counts)


def test_counts_are_computed() -> None:
    resources = ResourceSpecV1(process_count=4, processes_per_node=2, memory=4096)

    assert (resources.computed_node_count, resources.computed_process_count) == (2, 4)
    assert (resources.computed_processes_per_node, resources.memory_kb, resources.version) == (2, 4, 1)
    assert ResourceSpec.get_instance(1) == ResourceSpecV1()


def test_states_have_the_values_and_the_order_of_psij() -> None:
    names = ["NEW", "QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"]

    assert [JobState(value).name for value in range(6)] == names
    assert JobState.from_name("ACTIVE") is JobState.ACTIVE
    assert JobState.ACTIVE.is_greater_than(JobState.QUEUED)
    assert JobState.FAILED.is_greater_than(JobState.COMPLETED) is None
    assert JobState.NEW.is_greater_than(JobState.NEW) is False
    assert JobState.HELD.is_greater_than(JobState.QUEUED) is None
    assert JobState.ACTIVE.is_greater_than(JobState.HELD)
    assert [str(it) for it in JobState if it.final] == names[3:]
    assert psij.JobStateOrder.prev(JobState.ACTIVE) is JobState.QUEUED
    assert psij.JobStateOrder.prev(JobState.FAILED) is None


def full_spec() -> JobSpec:
    return JobSpec(
        name="test",
        executable="/bin/sleep",
        arguments=["1"],
        directory=Path("/tmp"),
        environment={"VAR1": "value1"},
        resources=ResourceSpecV1(node_count=1),
        attributes=JobAttributes(timedelta(minutes=20), custom_attributes={"ATTR1": "value1"}),
        launcher="single",
    )


def test_json_is_that_of_psij_python() -> None:
    serializer = JSONSerializer()

    text = serializer.dumps(full_spec())

    assert json.loads(text) == {
        "executable": "/bin/sleep",
        "arguments": ["1"],
        "directory": "/tmp",
        "name": "test",
        "environment": {"VAR1": "value1"},
        "resources": {"node_count": 1, "__version": 1},
        "attributes": {"duration": "1200.0 s", "custom_attributes": {"ATTR1": "value1"}},
        "launcher": "single",
    }
    assert serializer.loads(text) == full_spec()
    assert serializer.dumps(serializer.loads(text)) == text


def test_json_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="JobSpec has no speling"):
        JSONSerializer().loads('{"speling": 1}')


def test_what_open_ondemand_sends_is_read() -> None:
    sent = {"executable": "run.sh", "attributes": {"duration": 3600}, "resources": {"__version": 1}}

    spec = JSONSerializer()._to_spec(sent)

    assert spec.attributes.duration == timedelta(hours=1)
    assert spec.resources == ResourceSpecV1()


def test_export_and_import_are_inverse(tmp_path: Path) -> None:
    Export().export(full_spec(), tmp_path / "spec.json")
    (tmp_path / "plain.json").write_text(JSONSerializer().dumps(full_spec()))

    assert Import().load(tmp_path / "spec.json") == full_spec()
    assert Import().load(tmp_path / "plain.json") == full_spec()


def test_stagings_are_hashable_and_have_psijs_defaults() -> None:
    assert len({StageIn("a", "b"), StageIn("a", "b")}) == 1
    assert StageOut("a", URI("file:///b")).target == "file:///b"
    assert StageOut("a", "b").flags is StageOutFlags.ALWAYS
    assert (
        StageOut("a", "b", StageOutFlags.IF_PRESENT).flags == StageOutFlags.IF_PRESENT | StageOutFlags.ALWAYS
    )
    assert (URI("https://me@host:8/p").port, str(URI("a"))) == (8, "a")


def test_exceptions_are_those_of_jpsi() -> None:
    assert psij.InvalidJobException is jpsi.InvalidJobException
    assert psij.SubmitException is jpsi.SubmitException


@pytest.mark.parametrize("name", ["stage_in", "stage_out", "cleanup", "cleanup_flags"])
def test_what_has_no_text_is_refused(name: str) -> None:
    staging = {
        "stage_in": {StageIn("a", "b")},
        "stage_out": {StageOut("a", "b")},
        "cleanup": {Path("a")},
        "cleanup_flags": StageOutFlags.ON_SUCCESS,
    }

    with pytest.raises(ValueError, match=f"{name} cannot be serialized"):
        JSONSerializer().dumps(JobSpec("/bin/true", **{name: staging[name]}))  # type: ignore[arg-type]


def test_a_job_without_a_name_has_that_of_its_program() -> None:
    assert spec_for_jpsi(JobSpec(f"/{'long/' * 20}program"), "oar").name == "program"
    assert spec_for_jpsi(JobSpec("/bin/true", name="/a/b"), "oar").name == "/a/b"
