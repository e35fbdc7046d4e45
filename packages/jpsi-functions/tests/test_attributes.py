"""What jobs have, calls have: each attribute, resource and other part of a spec reaches the job of a call."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi_functions import FunctionExecutor
from jpsi_functions.call_specs import CallSpec, template
from jpsi_functions.sessions import StoredCall

_CALL = StoredCall(Path("/calls/1"), 0, attempt=0, items=1, job_id="")
# The parts of a spec that make the call itself.
_OWN = {"executable", "arguments", "name", "launcher", "resources", "attributes", "container"}
_NOTHING = {"cores": None, "memory": None, "gpus": None, "walltime": None}


def spec_of(
    spec: jpsi.JobSpec | None = None,
    attributes: jpsi.JobAttributes | None = None,
    resources: jpsi.ResourceSpec | None = None,
) -> jpsi.JobSpec:
    common = template(spec, attributes=attributes, resources=resources, **_NOTHING)
    return CallSpec(template=common, python="python3", is_remote=False, directory="/here").make(
        _CALL, "function"
    )


@pytest.mark.parametrize("name", [it.name for it in attrs.fields(jpsi.JobAttributes)])
def test_each_attribute_is_that_of_the_job(name: str) -> None:
    value = object()
    attributes = jpsi.JobAttributes()
    setattr(attributes, name, value)

    for spec in (
        spec_of(attributes=attributes),
        spec_of(jpsi.JobSpec(attributes=attributes)),
        spec_of(jpsi.JobSpec(attributes=jpsi.JobAttributes(queue_name="other")), attributes),
    ):
        assert getattr(spec.attributes, name) is value


@pytest.mark.parametrize("name", [it.name for it in attrs.fields(jpsi.ResourceSpecV1)])
def test_each_resource_is_that_of_the_job(name: str) -> None:
    resources = jpsi.ResourceSpecV1(**{name: 1})

    assert spec_of(resources=resources).resources == resources
    assert spec_of(jpsi.JobSpec(resources=resources)).resources == resources


@pytest.mark.parametrize("name", [it.name for it in attrs.fields(jpsi.JobSpec) if it.name not in _OWN])
def test_each_other_part_of_a_spec_is_that_of_the_job(name: str) -> None:
    value = object()
    spec = jpsi.JobSpec()
    setattr(spec, name, value)

    assert getattr(spec_of(spec), name) is value


def test_a_call_is_warned_and_its_job_is_asked_for_what_it_got(tmp_path: Path) -> None:
    attributes = jpsi.JobAttributes(warn=("USR1", 60))
    resources = jpsi.ResourceSpecV1(cpu_cores_per_process=1)
    with FunctionExecutor("local", walltime="1h", attributes=attributes, resources=resources) as executor:
        future = executor.submit(pow, 2, 10)

        assert future.result(60) == 1024
    spec = future.job.spec
    assert spec is not None
    assert spec.attributes.warn == ("USR1", 60)
    assert spec.attributes.duration == timedelta(hours=1)
    assert spec.resources == resources
    assert spec.executable == sys.executable
    assert attributes.duration is None


def test_calls_run_in_the_directory_of_the_spec(tmp_path: Path) -> None:
    with FunctionExecutor("local", spec=jpsi.JobSpec(directory=tmp_path)) as executor:
        assert executor.submit(Path.cwd).result(60) == tmp_path


def test_calls_run_in_a_container_that_shows_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "bin/apptainer"
    runtime.parent.mkdir()
    runtime.write_text(
        f'#!/bin/sh\necho "$*" >>{tmp_path}/started\n'
        'while [ "$1" != image.sif ]; do shift; done\nshift\nexec "$@"\n'
    )
    runtime.chmod(0o755)
    monkeypatch.setenv("PATH", str(runtime.parent), prepend=":")
    spec = jpsi.JobSpec(container=jpsi.Container("image.sif", runtime="apptainer", binds=["/opt"]))
    with FunctionExecutor("local", spec=spec, python=sys.executable, directory=tmp_path) as executor:
        future = executor.submit(Path.cwd)

        assert future.result(60) == tmp_path
        folder = Path.home() / "state/jpsi/work/functions/local"
        (started,) = (tmp_path / "started").read_text().splitlines()
        assert f"{folder}/" in started.partition("image.sif")[0]
        assert str(tmp_path) in started.partition("image.sif")[0]
    assert spec.container is not None
    assert spec.container.binds == [jpsi.Bind("/opt")]


def test_calls_in_a_container_are_made_by_its_python() -> None:
    spec = jpsi.JobSpec(container=jpsi.Container("image.sif"))
    with FunctionExecutor("local", spec=spec) as executor:
        assert executor._specs.python == "python3"


def test_a_policy_of_retries_has_the_call_made_again(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    def fail_once(value: int) -> int:
        with ran.open("a") as lines:
            lines.write(f"{value}\n")
        if value == 1 and ran.read_text().split().count("1") == 1:
            raise ValueError(value)
        return value

    with FunctionExecutor("local", attributes=jpsi.JobAttributes(retry={1: 2})) as executor:
        assert list(executor.map(fail_once, range(3), chunksize=3)) == [0, 1, 2]
    assert ran.read_text().split() == ["0", "1", "2", "1", "2"]
