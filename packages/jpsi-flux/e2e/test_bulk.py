"""Bulk submission in the Flux instance of the environment: one command submits a hundred jobs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_flux import FluxConfig
from jpsi_testing.conformance.base import shell

PATIENCE = 120


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = FluxConfig(work_directory=tmp_path / "work", grace=timedelta(seconds=5))
    with JobExecutor.get_instance("flux", config=config) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None
    return status


def test_each_of_many_has_its_own_id_and_code(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}", name="a {b} c")) for number in range(120)]

    executor.submit_many(jobs)

    list_jobs = ["flux", "jobs", "-a", "-c0", "--no-header", "--format={id.dec} {name}"]
    listing = subprocess.run(list_jobs, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    names = dict(line.split(" ", 1) for line in listing.splitlines())
    assert [names[job.native_id or ""] for job in jobs] == [f"a {{b}} c jpsi-{job.id}-1" for job in jobs]
    assert [final_status(job).exit_code for job in jobs] == [number % 100 for number in range(120)]


def test_some_of_many_pending_jobs_are_cancelled(executor: JobExecutor) -> None:
    jobs = [Job(shell("sleep 1000")) for _ in range(60)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs[1::2])
    assert {final_status(job).state for job in jobs[1::2]} == {JobState.CANCELED}
    assert not any(job.status.final for job in jobs[::2])

    executor.cancel_many(jobs)
    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}
