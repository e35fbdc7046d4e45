"""The commands of the engine Flux, and the parsing of their output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tomllib
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi import JobState, JobStatus, Reason, ResourceSpecV1
from jpsi_pilot import engines, flux_installation
from jpsi_pilot.engines import EngineMissing, new_engine, usable_engines
from jpsi_pilot.flux.instance import Instance, InstanceStatus, Shape
from jpsi_pilot.flux.node import UnfitError, wait_until_up
from jpsi_pilot.flux.task import end_from_status, environment_script, task_spec
from jpsi_pilot.node.node_log import NodeLog, log_path
from jpsi_pilot.protocol.values import End, Task
from jpsi_testing.fake import on_path
from test_scheduling_loop import SETTINGS

SHAPE = Shape(nodes=2, cores=4, gpus=1, kill_delay=0.5)


def task(**changes: Any) -> Task:
    """Return a task."""
    values: dict[str, Any] = {
        "native_id": "a-1",
        "restarts": 2,
        "script": 'echo "$GIVEN $JPSI_PILOT_JOB $(umask)" ${HOME-none}',
        "environment": "environments/x",
        "umask": 0o027,
        "variables": {"JPSI_PILOT_JOB": "a-1"},
        "cores": 3,
        "seconds": 60,
        "kill_delay": 1.0,
    }
    return Task(**(values | changes))


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (JobStatus(JobState.COMPLETED, exit_code=0), End(code=0)),
        (JobStatus(JobState.FAILED, exit_code=137), End(code=137)),
        (JobStatus(JobState.CANCELED, exit_code=143), End(code=143, why="cancel")),
        (JobStatus(JobState.CANCELED), End(code=None, why="cancel")),
        (JobStatus(JobState.FAILED, exit_code=142, reason=Reason.TIMEOUT), End(code=142, why="timeout")),
        (JobStatus(JobState.FAILED, exit_code=1, reason=Reason.NODE_FAIL), None),
        (JobStatus(JobState.FAILED, reason=Reason.LOST), End(code=None, why="lost")),
    ],
    ids=lambda it: str(it.why or it.code) if isinstance(it, End) else "",
)
def test_the_end_of_a_task_follows_from_the_status_of_its_flux_job(
    status: JobStatus, end: End | None
) -> None:
    assert end_from_status(status) == end


def test_a_job_that_flux_could_not_start_ends_with_a_message() -> None:
    end = end_from_status(JobStatus(JobState.FAILED, message="no such shell", reason=Reason.LAUNCH))

    assert end is not None
    assert (end.code, end.why) == (None, "unable")
    assert "no such shell" in end.message


def test_an_instance_has_the_requested_resources(tmp_path: Path) -> None:
    output = tomllib.loads(SHAPE.configuration(tmp_path / 'a "b"'))

    assert output == {
        "resource": {"path": str(tmp_path / 'a "b"'), "noverify": True},
        "exec": {"kill-timeout": "0.5s"},
    }
    (nodes,) = SHAPE.resources["execution"]["R_lite"]
    assert nodes == {"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}}


@pytest.mark.parametrize(
    ("uptime", "rank", "up"),
    [
        (" 09:30:51 run 29s,  owner me,  depth 0,  size 1\n", "0\n", InstanceStatus(rank=0, size=1)),
        (" 09:30:51 run 2.1h,  owner me,  depth 1,  size 16\n", "15\n", InstanceStatus(rank=15, size=16)),
        (" 09:30:51 init 0.5s,  owner me,  depth 0,  size 1\n", "0\n", None),
        ("", "", None),
    ],
    ids=["one", "of many", "not yet", "none"],
)
def test_an_instance_is_up_once_it_runs_jobs(uptime: str, rank: str, up: InstanceStatus | None) -> None:
    assert InstanceStatus.parse(uptime, rank) == up


def test_a_node_whose_instance_cannot_start_as_another_node_has_ended_says_so(tmp_path: Path) -> None:
    class Waiting(Instance):
        async def wait_until_up(self) -> InstanceStatus:
            await asyncio.get_running_loop().create_future()
            raise AssertionError

    NodeLog(log_path(tmp_path, "1/here.7")).record_worker(os.getpid())
    NodeLog(log_path(tmp_path, "1/there.8")).record_over()

    async def wait() -> None:
        await wait_until_up(Waiting(broker=None, uri=""), tmp_path, 0.0)  # type: ignore[arg-type]

    with pytest.raises(UnfitError, match=r"cannot start: node there\.8 of the pilot has ended"):
        asyncio.run(wait())


def test_a_task_has_the_environment_and_umask_of_its_submission_alone(tmp_path: Path) -> None:
    script, log = tmp_path / "environment", tmp_path / "log"
    script.write_bytes(environment_script({b"GIVEN": b"it's \xff", b"PATH": os.fsencode(os.defpath)}))
    spec = task_spec(task(), [1], log, script)

    done = subprocess.run(
        [str(spec.executable), *(spec.arguments or [])],
        env={"HOME": "/nowhere", "FLUX_URI": "x"},
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"it's \xff a-1 0027 none\n"
    assert log.read_text() == "beginning a-1 2\n"


def test_a_task_is_a_job_on_the_nodes_that_the_agent_has_chosen(tmp_path: Path) -> None:
    spec = task_spec(task(gpus=2), [1], tmp_path, tmp_path)

    assert isinstance(spec.resources, ResourceSpecV1)
    assert (spec.launcher, spec.resources.node_count) == ("single", None)
    assert (spec.resources.cpu_cores_per_process, spec.resources.gpu_cores_per_process) == (3, 2)
    assert spec.attributes is not None
    assert spec.attributes.duration == timedelta(seconds=60)
    assert (spec.attributes.custom_attributes or {})["flux.requires"] == "rank:1"


def test_a_task_of_several_nodes_is_an_instance_whose_address_it_knows(tmp_path: Path) -> None:
    spec = task_spec(task(), [0, 3], tmp_path, tmp_path)

    assert isinstance(spec.resources, ResourceSpecV1)
    assert (spec.resources.node_count, spec.resources.processes_per_node) == (2, 1)
    assert 'FLUX_URI="$FLUX_URI"' in (spec.arguments or [])[1]
    assert spec.attributes is not None
    assert (spec.attributes.custom_attributes or {})["flux.requires"] == "rank:0,3"


def test_flux_is_the_default_if_installed_and_dask_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = attrs.evolve(SETTINGS, engine=None)
    with on_path("flux"):
        assert new_engine(lambda: None, unnamed).name == "flux"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert new_engine(lambda: None, unnamed).name == "dask"


def test_an_unsupported_version_of_flux_is_refused_with_the_supported_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "flux"
    program.write_text("#!/bin/sh\necho 'commands:   0.40.0'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert flux_installation.flux_problem() == "flux-core is 0.40, and the engine flux needs >=0.58, <1.0"


@pytest.mark.parametrize(
    ("missing", "expected"),
    [("", {"dask", "flux"}), ("distributed", {"flux"}), ("flux", {"dask"}), ("cryptography", set())],
)
def test_engines_are_usable_if_their_requirements_are_installed(
    monkeypatch: pytest.MonkeyPatch, missing: str, expected: set[str]
) -> None:
    monkeypatch.setattr(
        flux_installation, "flux_problem", lambda: "it is too old" if missing == "flux" else ""
    )
    for module in (engines, flux_installation):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == missing else find_spec(name))

    assert usable_engines() == expected


def test_a_missing_package_of_an_engine_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        msg = "the executor flux is not installed"
        raise ImportError(msg)

    monkeypatch.setattr(flux_installation, "check_backend", missing)

    with pytest.raises(EngineMissing, match=r"jpsi-pilot\[flux\]"):
        new_engine(lambda: None, attrs.evolve(SETTINGS, engine="flux"))
