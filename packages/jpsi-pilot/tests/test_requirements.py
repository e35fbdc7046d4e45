"""The resources that a job needs of a pilot, and those that no pilot has."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1, Site
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.requirements import check_spec, is_retried, job_need, pilot_settings
from jpsi_pilot.protocol.values import Need, Settings

CONFIG = PilotConfig(cores_per_node=8, gpus_per_node=2, memory_per_node=1000)


def resource_spec(**fields: Any) -> JobSpec:
    """Return the spec of a job with these resources."""
    return JobSpec("/bin/true", resources=ResourceSpecV1.uneven(**fields))


def problems(spec: JobSpec, config: PilotConfig = CONFIG) -> list[str]:
    """Return the reasons why it cannot run."""
    return list(check_spec(spec, Site(config=config)))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (JobSpec("/bin/true"), Need(cores=1, seconds=600)),
        (resource_spec(process_count=2, cpu_cores_per_process=3), Need(cores=6, seconds=600)),
        (
            resource_spec(process_count=2, gpu_cores_per_process=1, memory=7),
            Need(cores=2, gpus=2, memory=7, seconds=600),
        ),
        (resource_spec(exclusive_node_use=True), Need(cores=8, gpus=2, memory=1000, seconds=600)),
        (
            JobSpec("/bin/true", attributes=JobAttributes(duration=timedelta(seconds=1.5))),
            Need(cores=1, seconds=2),
        ),
    ],
    ids=["nothing", "processes", "gpus and memory", "a node", "a duration"],
)
def test_need_of_a_job_on_one_node(spec: JobSpec, expected: Need) -> None:
    assert problems(spec) == []
    assert job_need(spec, CONFIG) == expected


def test_need_of_a_job_on_several_nodes_is_that_of_the_fullest() -> None:
    config = PilotConfig(nodes_per_pilot=2, cores_per_node=8, memory_per_node=1000)
    spec = resource_spec(node_count=2, process_count=3, cpu_cores_per_process=2, memory=101)

    assert problems(spec, config) == []
    assert job_need(spec, config) == Need(nodes=2, cores=4, memory=51, seconds=600)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (resource_spec(node_count=2), "needs 2 nodes, and a pilot has 1"),
        (resource_spec(process_count=9), "needs 9 cores, and a pilot has 8"),
        (resource_spec(gpu_cores_per_process=3), "needs 3 GPUs, and a pilot has 2"),
        (resource_spec(memory=1001), "needs 1001 bytes of memory"),
        (JobSpec("x", attributes=JobAttributes(duration=timedelta(0))), "no time limit"),
        (JobSpec("x", attributes=JobAttributes(duration=timedelta(hours=1, seconds=1))), "1:00:01"),
        (JobSpec("x", attributes=JobAttributes(queue_name="long")), "queue_name"),
        (JobSpec("x", attributes=JobAttributes(project_name="p")), "project_name"),
        (JobSpec("x", attributes=JobAttributes(reservation_id="r")), "reservation_id"),
        (JobSpec("x", attributes=JobAttributes(custom_attributes={"pilot.colour": 1})), "pilot.colour"),
        (
            JobSpec("x", attributes=JobAttributes(custom_attributes={"pilot.retry_on_pilot_loss": "yes"})),
            "must be True or False",
        ),
    ],
)
def test_a_job_that_no_pilot_can_run_is_refused(spec: JobSpec, why: str) -> None:
    (problem,) = problems(spec)

    assert why in problem


def test_a_job_may_take_all_of_a_pilots_walltime() -> None:
    spec = JobSpec("x", attributes=JobAttributes(duration=CONFIG.walltime))

    assert problems(spec) == []


def test_memory_is_unlimited_if_pilots_request_none() -> None:
    assert problems(resource_spec(memory=10**12), PilotConfig()) == []


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("requested", [True, False, None])
def test_a_job_overrides_the_configured_retry(configured: bool, requested: bool | None) -> None:
    custom = None if requested is None else {"pilot.retry_on_pilot_loss": requested}
    spec = JobSpec("x", attributes=JobAttributes(custom_attributes=custom))

    config = PilotConfig(retry_on_pilot_loss=configured)
    assert is_retried(spec, config) is (configured if requested is None else requested)


def test_different_settings_have_different_keys() -> None:
    one, other = pilot_settings(PilotConfig()), pilot_settings(PilotConfig(cores_per_node=2))

    assert one.key != other.key
    assert Settings.from_dict(one.to_dict()).key == one.key


def test_settings_survive_a_round_trip_through_json() -> None:
    import json  # noqa: PLC0415  nothing else needs it

    config = pilot_settings(PilotConfig(startup=("module load python", "ulimit -s 1")))

    assert Settings.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_pilots", 0),
        ("cores_per_node", "8"),
        ("gpus_per_node", -1),
        ("walltime", timedelta(0)),
        ("target", ""),
        ("startup", "module load python"),
    ],
)
def test_wrong_settings_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        PilotConfig(**{name: value})


def test_a_work_directory_stays_the_same_when_the_program_changes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = PilotConfig(work_directory="inner")
    monkeypatch.chdir("/")

    assert config.work_directory == tmp_path / "inner"
    assert PilotConfig(work_directory="~/inner", python="/opt/python").work_directory == Path("~/inner")
