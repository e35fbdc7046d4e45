"""Bulk submission on a real PBS or Torque: array elements are jobs like any other."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobState, JobStatus, Reason, SubmitException
from jpsi_pbs import PbsConfig
from jpsi_testing.conformance.base import Gate, shell

PATIENCE = 300.0


@pytest.fixture
def executor(server_system: str, tmp_path: Path) -> Iterator[JobExecutor]:
    config = PbsConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        grace=timedelta(seconds=15),
    )
    with JobExecutor.get_instance(server_system, config=config) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    """Return the final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, f"{job.native_id} has not ended: {job.status}"
    return status


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def test_elements_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number}")) for number in range(60)]

    executor.submit_many(jobs)

    number, _, server = (jobs[0].native_id or "").replace("[1]", "[]").partition("[]")
    assert [job.native_id for job in jobs] == [f"{number}[{index}]{server}" for index in range(1, 61)]
    assert exit_codes(jobs) == list(range(60))


def test_elements_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(40)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    executor.cancel_many([*jobs[:2], jobs[30], *jobs[32:]])

    cancelled = [final_status(job) for job in (*jobs[:2], jobs[30], *jobs[32:])]
    assert {status.state for status in cancelled} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[2:30]) == list(range(2, 30))
    assert final_status(jobs[31]).exit_code == 31


def test_all_held_jobs_are_cancelled(executor: JobExecutor) -> None:
    held = JobAttributes(custom_attributes={f"{executor.name}.h": True})
    jobs = [Job(shell("sleep 1000", attributes=held)) for _ in range(1000)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs)

    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_an_element_is_held_or_the_refusal_is_reported(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(30)]
    executor.submit_many(jobs)
    try:
        executor.hold(jobs[29])
    except SubmitException as e:
        assert executor.name == "pbs"
        assert "the array as a whole" in str(e)  # noqa: PT017  Torque holds it
        gate.open()
    else:
        gate.open()
        assert exit_codes(jobs[:29]) == list(range(29))
        executor.release(jobs[29])

    assert exit_codes(jobs) == list(range(30))


def test_array_elements_ended_by_others_are_reported(executor: JobExecutor) -> None:
    jobs = [Job(shell("exec sleep 1000")) for _ in range(30)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    subprocess.run(["qdel", jobs[0].native_id or "", jobs[29].native_id or ""], check=True)

    assert final_status(jobs[0]).state is JobState.CANCELED
    assert not jobs[28].status.final
    executor.cancel_many(jobs[1:29])
    assert {final_status(job).state for job in jobs[1:29]} == {JobState.CANCELED}
    deleted = final_status(jobs[29])
    # PBS reports nothing about elements that were deleted before they began
    assert (deleted.state, deleted.reason) in {
        (JobState.FAILED, Reason.LOST),
        (JobState.CANCELED, Reason.CANCELLED),
    }


def test_an_element_of_another_client_can_be_attached_to(executor: JobExecutor, tmp_path: Path) -> None:
    option, variable = ("-J", "PBS_ARRAY_INDEX") if executor.name == "pbs" else ("-t", "PBS_ARRAYID")
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nsleep 5; exit ${variable}\n")
    qsub = ["qsub", "-o", "/dev/null", "-e", "/dev/null", option, "1-3", str(script)]
    array = subprocess.run(qsub, check=True, capture_output=True, text=True).stdout.strip()
    jobs = [Job() for _ in range(3)]

    executor.attach_many((job, array.replace("[]", f"[{index}]")) for index, job in enumerate(jobs, 1))

    assert exit_codes(jobs) == [1, 2, 3]
