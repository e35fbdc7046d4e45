"""Bulk submission on the LSF on PATH: array elements are jobs like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import real_lsf

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_testing.conformance.base import Gate, shell

PATIENCE = 300


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("lsf", config=real_lsf.config(tmp_path / "work")) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None
    return status


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def test_elements_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}", name="a b")) for number in range(120)]

    executor.submit_many(jobs)

    array = (jobs[0].native_id or "").partition("[")[0]
    assert [job.native_id for job in jobs] == [f"{array}[{index}]" for index in range(1, 121)]
    assert exit_codes(jobs) == [number % 100 for number in range(120)]


def test_elements_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(40)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    executor.cancel_many(jobs[::2])

    assert {final_status(job).state for job in jobs[::2]} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[1::2]) == list(range(1, 40, 2))


def test_an_element_is_held_and_released(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(20)]
    executor.submit_many(jobs)
    executor.hold(jobs[19])
    gate.open()

    assert exit_codes(jobs[:19]) == list(range(19))
    seen = executor.info(jobs[19])
    assert seen is not None
    assert seen.native_state == "PSUSP"
    executor.release(jobs[19])
    assert final_status(jobs[19]).exit_code == 19


def test_an_element_can_be_attached_to_and_waited_for(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"sleep 4; exit {number}")) for number in range(3)]
    executor.submit_many(jobs)
    other = Job()

    executor.attach(other, jobs[1].native_id or "")

    assert final_status(other).exit_code == 1
    assert exit_codes(jobs) == [0, 1, 2]
