"""Heterogeneous jobs on a real Slurm: jobs with slots of several kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_slurm import (
    PATIENCE,
    PLAIN,
    attach,
    command,
    exit_code_in_accounting,
    final_status,
    native_id,
    run,
    running,
    sbatch,
    wait_until_drained,
    wait_until_forgotten,
)

from jpsi import Dependency, Evidence, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi.plugin import HeterogeneousResources, ResourceSpecV1
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually

KINDS = HeterogeneousResources(
    [ResourceSpecV1(cpu_cores_per_process=2, memory=2**27), ResourceSpecV1(process_count=3)]
)
KIND = {"resources": KINDS, "launcher": "single"}


def _components(job: Job) -> list[tuple[str, str]]:
    """Return Slurm's ids and states of the components of a job."""
    listed = command("squeue", "-h", "-t", "all", "-j", native_id(job), "-o", "%A %T")
    return sorted(tuple(line.split()) for line in listed.splitlines())  # type: ignore[misc]  # two words


def _queue_state(executor: JobExecutor, job: Job) -> JobState | None:
    observation = executor.info(job)
    return None if observation is None else observation.state


def test_the_exit_code_is_that_of_the_script(executor: JobExecutor, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"

    status = run(executor, shell('cat "$JPSI_NODEFILE" >"$1"; exit 7', nodes, **KIND))

    assert (status.state, status.exit_code) == (JobState.FAILED, 7)
    first, *others = nodes.read_text().split()
    assert len(others) == 3
    assert {first, *others} == {"node01", "node02"}
    assert first not in others


def test_one_step_runs_over_all_components(executor: JobExecutor, tmp_path: Path) -> None:
    """Tests the command of jpsi's launcher without its package, which e2e_launchers does."""
    step = 'srun --het-group=0 --ntasks=1 "$0" "$1" : --het-group=1 --ntasks=3 "$0" "$1"'
    task = tmp_path / "task"
    task.write_text('#!/bin/sh\necho "$SLURMD_NODENAME" >"$1/$SLURM_PROCID"\n')
    task.chmod(0o755)
    written = tmp_path / "ranks"
    written.mkdir()

    status = run(executor, JobSpec("/bin/sh", ["-c", step, str(task), str(written)], **KIND))

    assert status.state is JobState.COMPLETED
    assert sorted(it.name for it in written.iterdir()) == ["0", "1", "2", "3"]


def test_a_cancelled_job_leaves_no_component(executor: JobExecutor, tmp_path: Path) -> None:
    job = running(executor, PLAIN, tmp_path / "proof", **KIND)

    job.cancel()

    assert final_status(job).state is JobState.CANCELED
    wait_until_drained(job)


def test_a_component_that_is_cancelled_alone_does_not_end_the_job(
    executor: JobExecutor, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    spec = gate.job(0)
    spec.resources, spec.launcher = KINDS, "single"
    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    (_, (second, _)) = _components(job)

    command("scancel", second)
    assert eventually(lambda: _components(job)[1][1] == "CANCELLED", PATIENCE)
    assert eventually(lambda: _queue_state(executor, job) is JobState.ACTIVE, PATIENCE)
    observation = executor.info(job)
    assert observation is not None
    assert sorted(observation.nodes) == ["node01", "node02"]
    gate.open()

    assert final_status(job).state is JobState.COMPLETED


def test_a_pending_job_is_held_released_and_attached_to(executor: JobExecutor, tmp_path: Path) -> None:
    blocking = sbatch("sleep 1000", "--exclusive", "--nodes=2")
    proof = Proof(tmp_path / "proof")
    spec = proof.job(0)
    spec.resources, spec.launcher = KINDS, "single"
    job = Job(spec)
    try:
        executor.submit(job)
        executor.hold(job)
        same = attach(executor, f"{native_id(job)}+0")
        same.wait(JobState.QUEUED, PATIENCE)
        assert same.native_id == native_id(job)
        assert [state for _, state in _components(job)] == ["PENDING", "PENDING"]
        executor.release(job)
    finally:
        command("scancel", blocking)

    assert (final_status(job).state, final_status(same).state, proof.runs) == (
        JobState.COMPLETED,
        JobState.COMPLETED,
        1,
    )


@pytest.mark.parametrize(("code", "state"), [(0, JobState.COMPLETED), (3, JobState.FAILED)])
def test_dependencies_on_a_heterogeneous_job_are_satisfied(
    executor: JobExecutor, tmp_path: Path, code: int, state: JobState
) -> None:
    gate = Gate(tmp_path / "gate")
    spec = gate.job(code)
    spec.resources, spec.launcher = KINDS, "single"
    first = Job(spec)
    executor.submit(first)
    after = JobAttributes(after=[Dependency(first)])
    second = Job(JobSpec("/bin/true", attributes=after, **KIND))  # type: ignore[arg-type]  # fields of a spec
    executor.submit(second)

    gate.open()

    assert final_status(first).state is state
    if code == 0:
        assert final_status(second).state is JobState.COMPLETED
    else:
        assert (final_status(second).state is JobState.COMPLETED, final_status(second).reason) == (
            False,
            Reason.DEPENDENCY,
        )


def test_jobs_submitted_together_are_no_array(executor: JobExecutor, tmp_path: Path) -> None:
    proofs = [Proof(tmp_path / str(number)) for number in range(2)]
    jobs = []
    for proof in proofs:
        spec = proof.job(0)
        spec.resources, spec.launcher = KINDS, "single"
        jobs.append(Job(spec))

    executor.submit_many(jobs)

    assert [final_status(job).state for job in jobs] == [JobState.COMPLETED] * 2
    assert [proof.runs for proof in proofs] == [1, 1]
    assert not any("_" in native_id(job) for job in jobs)


@pytest.mark.slurm(accounting=True, min_job_age=2)
def test_the_accounting_reports_a_job_that_the_controller_has_forgotten(executor: JobExecutor) -> None:
    number = sbatch("#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=2\nsleep 1; kill -KILL $$")
    assert exit_code_in_accounting(number).startswith("FAILED")
    wait_until_forgotten(number)

    status = final_status(attach(executor, number))

    assert (status.state, status.exit_code) == (JobState.FAILED, 128 + 9)
    assert status.evidence is Evidence.ACCOUNTING
