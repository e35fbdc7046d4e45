"""Pilots as jobs: the requests to their target."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from jpsi import Job
from jpsi.plugin import JobSpec, ResourceSpecV1
from jpsi_pilot.agent.pilot_jobs import PilotJobs, create_pilot_directory, pilot_spec
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.requirements import pilot_settings
from jpsi_pilot.protocol.engine import Equipment


def test_a_pilot_requests_the_configured_resources(tmp_path: Path) -> None:
    config = PilotConfig(
        target="slurm",
        nodes_per_pilot=2,
        cores_per_node=8,
        gpus_per_node=1,
        memory_per_node=1000,
        walltime=timedelta(hours=1),
        margin=timedelta(minutes=1),
        queue_name="long",
        project_name="proj",
    )

    spec = pilot_spec("7", pilot_settings(config), tmp_path, Equipment(module=["a.module"]))

    assert spec.name == "pilot-7"
    assert spec.resources == ResourceSpecV1(
        node_count=2, processes_per_node=1, cpu_cores_per_process=8, gpu_cores_per_process=1, memory=2000
    )
    assert spec.attributes is not None
    assert spec.attributes.duration == timedelta(hours=1, minutes=1)
    assert (spec.attributes.queue_name, spec.attributes.project_name) == ("long", "proj")
    assert spec.arguments is not None
    assert spec.arguments[-3:] == [str(tmp_path), "8", "a.module"]


def test_a_pilot_in_the_current_allocation_names_the_job_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPSI_JOB_ID", "17")
    submitted: list[Job] = []
    monkeypatch.setattr(PilotJobs, "_executor", lambda *_: SimpleNamespace(submit=submitted.append))

    for target in ("here", "slurm"):
        PilotJobs(lambda: None).submit(Job(JobSpec("pilot")), target)

    found = [it.spec.attributes.custom_attributes for it in submitted if it.spec is not None]
    assert found == [{"jpsi.allocation": "17"}, None]


def test_nothing_in_a_path_is_expanded(tmp_path: Path) -> None:
    folder = tmp_path / "${HOME}"

    spec = pilot_spec("7", pilot_settings(PilotConfig()), folder, Equipment(module=["a.module"]))

    assert spec.arguments is not None
    assert f"{tmp_path}/$${{HOME}}" in spec.arguments


def test_startup_lines_run_before_anything_else(tmp_path: Path) -> None:
    config = pilot_settings(PilotConfig(startup=("module load python", "ulimit -s 1")))

    create_pilot_directory(tmp_path / "7", config)

    spec = pilot_spec("7", config, tmp_path / "7", Equipment(module=["a.module"]))
    assert spec.pre_launch is not None
    assert Path(spec.pre_launch).read_text() == "module load python\nulimit -s 1\n"
    assert stat.S_IMODE((tmp_path / "7").stat().st_mode) == 0o700


def test_a_pilot_in_the_current_allocation_starts_on_its_nodes_by_a_launcher(tmp_path: Path) -> None:
    config = PilotConfig(target="here", nodes_per_pilot=2, cores_per_node=4, launcher="srun")

    spec = pilot_spec("7", pilot_settings(config), tmp_path, Equipment(module=["a.module"]))

    assert spec.resources == ResourceSpecV1(process_count=2, cpu_cores_per_process=4)
    assert spec.launcher == "srun"
    with pytest.raises(ValueError, match="launcher must be named"):
        PilotConfig(target="here", nodes_per_pilot=2)
