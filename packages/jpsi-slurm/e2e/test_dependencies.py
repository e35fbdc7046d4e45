"""Dependencies on a Slurm that forgets jobs and then takes them for satisfied."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_slurm import PLAIN, final_status, job_with_proof, native_id, running, sbatch, wait_until_forgotten

import jpsi
from jpsi import Dependency, Evidence, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi_testing.conformance.base import Proof


def waiting(path: Path, *after: Dependency | Job | str) -> Job:
    """Return a job that proves that it ran once the jobs it depends on have ended."""
    job = job_with_proof(path, 0)
    assert job.spec is not None
    job.spec.attributes = JobAttributes(after=list(after))
    return job


def test_a_chain_runs_in_its_order(executor: JobExecutor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    before: list[Job] = []
    for number in range(5):
        text = f"sleep 0.$((5 - {number})); echo {number} >>{log}"
        attributes = JobAttributes(after=[*before])
        before.append(Job(JobSpec("/bin/sh", ["-c", text], attributes=attributes)))
        executor.submit(before[-1])

    assert [final_status(job).state for job in before] == [JobState.COMPLETED] * 5
    assert log.read_text().split() == [*"01234"]


def test_slurm_cancels_a_job_whose_dependency_is_never_satisfied(
    executor: JobExecutor, tmp_path: Path
) -> None:
    first = running(executor, PLAIN, tmp_path / "first")
    second = waiting(tmp_path / "second", first)
    executor.submit(second)

    first.cancel()

    assert final_status(first).state is JobState.CANCELED
    status = final_status(second)
    assert (status.state, status.reason, status.exit_code) == (JobState.CANCELED, Reason.DEPENDENCY, None)
    assert status.evidence is Evidence.QUEUE
    assert Proof(tmp_path / "second").runs == 0


@pytest.mark.slurm(min_job_age=2)
def test_a_forgotten_job_of_jpsi_has_its_final_state(executor: JobExecutor, tmp_path: Path) -> None:
    for code in (0, 3):
        first = job_with_proof(tmp_path / f"first{code}", code)
        executor.submit(first)
        final_status(first)
        wait_until_forgotten(native_id(first))
        second = waiting(tmp_path / f"second{code}", native_id(first))

        if code:
            with pytest.raises(jpsi.InvalidJobException, match="FAILED"):
                executor.submit(second)
        else:
            executor.submit(second)
            assert final_status(second).state is JobState.COMPLETED
        assert Proof(tmp_path / f"second{code}").runs == (0 if code else 1)


@pytest.mark.slurm(min_job_age=2)
def test_a_forgotten_foreign_job_never_counts_as_completed(executor: JobExecutor, tmp_path: Path) -> None:
    """Slurm itself would start the second job at once."""
    first = sbatch("exit 3")
    wait_until_forgotten(first)
    second = waiting(tmp_path / "proof", first)

    with pytest.raises(jpsi.InvalidJobException, match=f"{first}, which is not known"):
        executor.submit(second)

    assert second.status.state is JobState.NEW
    assert Proof(tmp_path / "proof").runs == 0


@pytest.mark.slurm(accounting=True, min_job_age=2)
def test_the_accounting_reports_the_end_of_a_forgotten_job(executor: JobExecutor, tmp_path: Path) -> None:
    failed, well = sbatch("exit 3"), sbatch("exit 0")
    wait_until_forgotten(failed)
    wait_until_forgotten(well)

    with pytest.raises(jpsi.InvalidJobException, match="FAILED"):
        executor.submit(waiting(tmp_path / "never", failed))
    after = waiting(tmp_path / "proof", well, Dependency(failed, jpsi.DependencyKind.NOTOK))
    executor.submit(after)

    assert final_status(after).state is JobState.COMPLETED
    assert Proof(tmp_path / "never").runs == 0
