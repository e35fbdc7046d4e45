"""A program inside a job that submits jobs: they inherit nothing from the surrounding job."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

import jpsi
import jpsi_engine.job_store
from jpsi_testing.fake import FakeScheduler

PATIENCE = 60
#: Prints for each of its jobs jpsi's native id, the id that the job itself has, and the exit code.
PROGRAM = """
import json, sys
import jpsi

results = []
for name in sys.argv[1:]:
    spec = jpsi.JobSpec("/bin/sh", ["-c", 'echo "$JPSI_JOB_ID" "$SLURM_JOB_ID"; exit 3'])
    job = jpsi.Job(spec)
    jpsi.JobExecutor(name).submit(job)
    status = job.wait()
    output = job.streams.stdout.read_text().split()
    results.append([job.id, job.native_id, output, str(status.state), status.exit_code])
print(json.dumps(results))
"""


@pytest.mark.clause("layer-nested")
def test_a_job_runs_local_and_batch_jobs(fake_commands: Callable[..., FakeScheduler]) -> None:
    slurm = fake_commands("slurm")
    around = jpsi.Job(jpsi.JobSpec(sys.executable, ["-c", PROGRAM, "local", "slurm"], name="around"))
    assert around.spec is not None
    around.spec.environment = {"SBATCH_JOB_NAME": "of the job around"}
    jpsi.JobExecutor("slurm").submit(around)

    status = around.wait(PATIENCE)

    assert status is not None
    assert around.streams is not None
    assert status.state is jpsi.JobState.COMPLETED, around.streams.stderr.read_text()
    here, there = json.loads(around.streams.stdout.read_text())
    assert here[2:] == [[here[0], around.native_id], "FAILED", 3]
    assert there[2:] == [[there[0], there[1]], "FAILED", 3]
    assert {job.native_id: job.name for job in slurm.jobs} == {around.native_id: "around", there[1]: "jpsi"}
    assert len({around.id, here[0], there[0]}) == 3


@pytest.mark.clause("layer-nested")
def test_a_nested_job_has_its_own_files(fake_commands: Callable[..., FakeScheduler]) -> None:
    """Any client finds both jobs, with their own ends."""
    fake_commands("slurm")
    around = jpsi.Job(jpsi.JobSpec(sys.executable, ["-c", PROGRAM, "slurm"], name="around"))
    executor = jpsi.JobExecutor("slurm")
    executor.submit(around)
    assert around.wait(PATIENCE) is not None
    assert around.streams is not None
    ((inner, native_id, *_),) = json.loads(around.streams.stdout.read_text())

    found = {job.id: job for job in jpsi_engine.job_store.jobs()}
    attached = jpsi.Job()
    executor.attach(attached, native_id)

    assert found[inner].status.exit_code == 3
    assert found[around.id].status.exit_code == 0
    assert attached.wait(PATIENCE) is not None
    assert attached.status.exit_code == 3
