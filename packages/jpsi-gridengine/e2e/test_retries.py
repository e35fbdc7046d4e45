"""Jobs that Grid Engine ends at a limit, and that run again with more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from jpsi_gridengine import GridEngineConfig
from jpsi_testing.conformance.base import shell

PATIENCE = 300.0

# Four processes that together hold what is asked for; Grid Engine adds up their memory once a second.
HOLDER = "import sys, time; held = b'x' * int(sys.argv[1]); time.sleep(6)"
HOLD = 'for i in 1 2 3 4; do "$1" -c "$2" "$3" & done; wait'

WARNED = """
import signal, sys, time

started = time.time()

def leave(*_):
    print(time.time() - started)
    sys.exit(0)

signal.signal(signal.SIGUSR1, leave)
time.sleep(1000)
"""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = GridEngineConfig(
        work_directory=tmp_path / "work",
        memory_resource="h_vmem",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        grace=timedelta(seconds=5),
    )
    with JobExecutor.get_instance("gridengine", config=config) as executor:
        yield executor


def test_a_job_ended_for_its_memory_runs_again_with_more(executor: JobExecutor) -> None:
    job = Job(
        shell(
            HOLD,
            sys.executable,
            HOLDER,
            150 * 2**20,
            resources=ResourceSpecV1(memory=200 * 2**20),
            attributes=JobAttributes(retry={"out_of_memory": 3, "grow_memory": 2}),
        )
    )
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.metadata["attempt"]) == (JobState.COMPLETED, 3)


def test_a_job_ended_at_its_time_limit_runs_again_with_more(executor: JobExecutor) -> None:
    attributes = JobAttributes(duration=timedelta(seconds=4), retry={"timeout": 2, "grow_duration": 10})
    job = Job(shell("sleep 10", attributes=attributes))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.metadata["attempt"]) == (JobState.COMPLETED, 2)


def test_the_warning_comes_in_time(executor: JobExecutor, tmp_path: Path) -> None:
    attributes = JobAttributes(duration=timedelta(seconds=30), warn=("USR1", 20))
    job = Job(JobSpec(sys.executable, ["-c", WARNED], stdout_path=tmp_path / "out", attributes=attributes))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.COMPLETED
    assert float((tmp_path / "out").read_text()) == pytest.approx(10, abs=2)
