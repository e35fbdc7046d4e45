"""Types, limits and ends of jobs on a real OAR, and the status that jpsi reports."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi_oar import OarConfig
from jpsi_testing.conformance.base import Gate, Proof, shell

pytestmark = pytest.mark.skipif(shutil.which("oarsub") is None, reason="there is no oarsub on PATH")

PATIENCE = 900.0
#: All that ci/oar has.
EVERYTHING = ResourceSpecV1(node_count=2, exclusive_node_use=True)


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = OarConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=2),
        grace=timedelta(seconds=15),
    )
    with JobExecutor.get_instance("oar", config=config) as executor:
        yield executor


def _submit(executor: JobExecutor, spec: JobSpec) -> Job:
    job = Job(spec)
    executor.submit(job)
    return job


def _end(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status


def _attributes(seconds: float = 600, **options: object) -> JobAttributes:
    custom = {f"oar.{name}": value for name, value in options.items()}
    return JobAttributes(duration=timedelta(seconds=seconds), custom_attributes=custom)


def test_a_time_limit_is_reported(executor: JobExecutor) -> None:
    job = _submit(executor, shell("sleep 1000", attributes=_attributes(2)))

    status = _end(job)

    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT), status


def test_a_signal_comes_before_the_time_limit(executor: JobExecutor, tmp_path: Path) -> None:
    text = "trap 'echo got >\"$1\"; exit 3' USR1; while :; do sleep 0.2; done"
    spec = shell(text, tmp_path / "signal", attributes=_attributes(60, checkpoint=55, signal=10))
    job = _submit(executor, spec)

    status = _end(job)

    assert (tmp_path / "signal").read_text() == "got\n"
    assert (status.state, status.exit_code) == (JobState.FAILED, 3), status


@pytest.mark.alone
@pytest.mark.parametrize(
    "types", [pytest.param("besteffort", marks=pytest.mark.long), "besteffort idempotent"]
)
def test_a_job_that_had_to_make_room_is_preempted_or_runs_again(
    executor: JobExecutor, tmp_path: Path, types: str
) -> None:
    """OAR kills the job for another, and runs it again only if it is idempotent."""
    gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "ran")
    text = f"{Proof.WRITE}; {Gate.WAIT.replace('$1', '$2')}"
    everything: dict[str, Any] = {"resources": EVERYTHING, "launcher": "single"}
    spec = shell(text, proof.path, gate.path, attributes=_attributes(type=types), **everything)
    weak = _submit(executor, spec)
    assert weak.wait(PATIENCE, JobState.ACTIVE)

    strong = _submit(executor, JobSpec("/bin/true", attributes=_attributes(60), **everything))

    assert _end(strong).state is JobState.COMPLETED
    if types == "besteffort":
        status = _end(weak)
        assert (status.state, status.reason) == (JobState.FAILED, Reason.PREEMPTED), status
        assert proof.runs == 1
    else:
        gate.open()
        assert _end(weak).state is JobState.COMPLETED
        assert proof.runs == 2


def test_a_job_runs_in_a_container(executor: JobExecutor, tmp_path: Path) -> None:
    resources = ResourceSpecV1(process_count=2)
    spec = shell(
        "sleep 1000", launcher="single", resources=resources, attributes=_attributes(type="container")
    )
    container = _submit(executor, spec)
    assert container.wait(PATIENCE, JobState.ACTIVE)
    inner = _submit(
        executor,
        JobSpec(
            "/bin/true",
            attributes=JobAttributes(reservation_id=container.native_id, duration=timedelta(seconds=60)),
        ),
    )

    assert _end(inner).state is JobState.COMPLETED
    container.cancel()
    assert _end(container).state is JobState.CANCELED


@pytest.mark.long
def test_a_job_starts_at_its_reserved_time(executor: JobExecutor) -> None:
    job = _submit(
        executor, JobSpec("/bin/true", attributes=_attributes(60, reservation="2037-01-01 00:00:00"))
    )

    seen = executor.info(job)

    assert seen is not None
    assert seen.state is JobState.QUEUED
    job.cancel()
    assert _end(job).state is JobState.CANCELED


def test_properties_hierarchies_and_projects_reach_oar(executor: JobExecutor, tmp_path: Path) -> None:
    spec = shell(
        'cat "$OAR_NODEFILE" >"$1"; echo "$OAR_PROJECT_NAME $OAR_JOB_WALLTIME" >>"$1"',
        tmp_path / "out",
        launcher="single",
        resources=ResourceSpecV1(node_count=2, processes_per_node=1, cpu_cores_per_process=2),
        attributes=JobAttributes(
            project_name="my project",
            duration=timedelta(seconds=61),
            custom_attributes={"oar.property": "network_address LIKE 'oarnode%'"},
        ),
    )

    assert _end(_submit(executor, spec)).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "oarnode01\n" * 2 + "oarnode02\n" * 2 + "my project 0:1:1\n"


@pytest.mark.long
def test_processes_of_several_cores_need_no_number_of_nodes(executor: JobExecutor, tmp_path: Path) -> None:
    resources = ResourceSpecV1(process_count=3, cpu_cores_per_process=2)
    spec = shell('sort "$JPSI_NODEFILE" >"$1"', tmp_path / "nodes", launcher="single", resources=resources)

    assert _end(_submit(executor, spec)).state is JobState.COMPLETED
    assert len((tmp_path / "nodes").read_text().split()) == 3


def test_an_element_that_oardel_ended_is_canceled_alone(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job()) for _ in range(3)]
    executor.submit_many(jobs)
    assert all(job.wait(PATIENCE, JobState.ACTIVE) for job in jobs)
    seen = executor.info(jobs[1])
    assert seen is not None
    assert re.fullmatch(r"[0-9]+\.2", jobs[1].native_id or "")

    subprocess.run(["oardel", seen.details["oar.job"]], check=True)

    assert _end(jobs[1]).state is JobState.CANCELED
    gate.open()
    assert {_end(job).state for job in (jobs[0], jobs[2])} == {JobState.COMPLETED}


def test_a_job_is_attached_by_any_number_that_oar_gave_it(executor: JobExecutor, tmp_path: Path) -> None:
    printed = subprocess.run(
        ["oarsub", "--array=2", "-d", str(tmp_path), "-l", "walltime=0:1:0", "exit 4"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    numbers = re.findall(r"OAR_JOB_ID=(\d+)", printed)
    for native_id in (numbers[1], f"{numbers[0]}.2"):
        job = Job()
        executor.attach(job, native_id)

        status = _end(job)

        assert (status.state, status.exit_code) == (JobState.FAILED, 4), status


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        (JobSpec("/bin/true", attributes=JobAttributes(queue_name="nosuch")), "does not exist"),
        (JobSpec("/bin/true", resources=ResourceSpecV1(cpu_cores_per_process=9)), "not enough resources"),
        (JobSpec("/bin/true", attributes=_attributes(type="nosuch")), "unknown job type"),
        (JobSpec("/bin/true", attributes=JobAttributes(reservation_id="99999")), "invalid container"),
        (JobSpec("/bin/true", attributes=_attributes(resource="/nosuch=1")), "Bad resource request"),
        (JobSpec("/bin/true", attributes=_attributes(reservation="tomorrow")), "Syntax error"),
    ],
    ids=["queue", "resources", "type", "container", "hierarchy", "date"],
)
def test_what_oar_refuses_is_an_invalid_job(executor: JobExecutor, spec: JobSpec, match: str) -> None:
    with pytest.raises(jpsi.InvalidJobException, match=match):
        executor.submit(Job(spec))


def test_a_held_job_waits_to_be_released(executor: JobExecutor) -> None:
    job = _submit(executor, JobSpec("/bin/true", attributes=_attributes(hold=True)))
    seen = executor.info(job)
    assert seen is not None
    assert seen.native_state == "Hold"

    executor.release(job)

    assert _end(job).state is JobState.COMPLETED


@pytest.mark.long
@pytest.mark.alone
def test_an_idempotent_job_that_asks_for_it_runs_again(executor: JobExecutor, tmp_path: Path) -> None:
    """OAR resubmits what exits with 99 after more than a minute."""
    proof = Proof(tmp_path / "ran")
    text = f'{Proof.WRITE}; [ "$(wc -l <"$1")" = 1 ] || exit 0; sleep 65; exit 99'
    job = _submit(executor, shell(text, proof.path, attributes=_attributes(type="idempotent")))

    assert _end(job).state is JobState.COMPLETED
    assert proof.runs == 2
