"""What a job asks of a pilot, and what no pilot can give."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1, Site
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.executor.requirements import check_spec, need, runs_again, settings
from jpsi_pilot.protocol.values import Need, Settings

CONFIG = PilotConfig(cores_per_node=8, gpus_per_node=2, memory_per_node=1000)


def asked(**fields: Any) -> JobSpec:
    """A job with these resources."""
    return JobSpec("/bin/true", resources=ResourceSpecV1(**fields))


def problems(spec: JobSpec, config: PilotConfig = CONFIG) -> list[str]:
    """Why it cannot run."""
    return list(check_spec(spec, Site(config=config)))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (JobSpec("/bin/true"), Need(cores=1, seconds=600)),
        (asked(process_count=2, cpu_cores_per_process=3), Need(cores=6, seconds=600)),
        (
            asked(process_count=2, gpu_cores_per_process=1, memory=7),
            Need(cores=2, gpus=2, memory=7, seconds=600),
        ),
        (asked(exclusive_node_use=True), Need(cores=8, gpus=2, memory=1000, seconds=600)),
        (
            JobSpec("/bin/true", attributes=JobAttributes(duration=timedelta(seconds=1.5))),
            Need(cores=1, seconds=2),
        ),
    ],
    ids=["nothing", "processes", "gpus and memory", "a node", "a duration"],
)
def test_what_a_job_takes_of_a_node(spec: JobSpec, expected: Need) -> None:
    assert problems(spec) == []
    assert need(spec, CONFIG) == expected


def test_of_several_nodes_a_job_takes_what_the_fullest_needs_of_each() -> None:
    config = PilotConfig(nodes_per_pilot=2, cores_per_node=8, memory_per_node=1000)
    spec = asked(node_count=2, process_count=3, cpu_cores_per_process=2, memory=101)

    assert problems(spec, config) == []
    assert need(spec, config) == Need(nodes=2, cores=4, memory=51, seconds=600)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (asked(node_count=2), "needs 2 nodes, and a pilot has 1"),
        (asked(process_count=9), "needs 9 cores, and a pilot has 8"),
        (asked(gpu_cores_per_process=3), "needs 3 GPUs, and a pilot has 2"),
        (asked(memory=1001), "needs 1001 bytes of memory"),
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
def test_what_no_pilot_can_give_is_refused(spec: JobSpec, why: str) -> None:
    (problem,) = problems(spec)

    assert why in problem


def test_a_job_may_take_all_of_a_pilots_walltime() -> None:
    spec = JobSpec("x", attributes=JobAttributes(duration=CONFIG.walltime))

    assert problems(spec) == []


def test_memory_is_no_matter_where_pilots_ask_for_none() -> None:
    assert problems(asked(memory=10**12), PilotConfig()) == []


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("said", [True, False, None])
def test_a_job_says_itself_whether_it_runs_again(configured: bool, said: bool | None) -> None:
    custom = None if said is None else {"pilot.retry_on_pilot_loss": said}
    spec = JobSpec("x", attributes=JobAttributes(custom_attributes=custom))

    config = PilotConfig(retry_on_pilot_loss=configured)
    assert runs_again(spec, config) is (configured if said is None else said)


def test_what_differs_in_pilots_differs_in_their_key() -> None:
    one, other = settings(PilotConfig()), settings(PilotConfig(cores_per_node=2))

    assert one.key != other.key
    assert Settings.of(one.plain()).key == one.key


def test_settings_are_the_same_after_they_have_been_json() -> None:
    import json  # noqa: PLC0415  nothing else needs it

    config = settings(PilotConfig(startup=("module load python", "ulimit -s 1")))

    assert Settings.of(json.loads(json.dumps(config.plain()))) == config


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


def test_a_work_directory_stays_where_it_was_when_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = PilotConfig(work_directory="inner")
    monkeypatch.chdir("/")

    assert config.work_directory == tmp_path / "inner"
    assert PilotConfig(work_directory="~/inner", python="/far/python").work_directory == Path("~/inner")
