"""Foreign jobs: they can be attached to, and do not disturb jpsi's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_slurm import attach, command, final_status, job_with_proof, sbatch, wait_until_pending

from jpsi import Evidence, JobExecutor, JobState, Reason

ACCOUNTED = pytest.param(marks=pytest.mark.slurm(accounting=True), id="accounting")
EITHER_WAY = pytest.mark.parametrize((), [pytest.param(id="no accounting"), ACCOUNTED])


@EITHER_WAY
@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (0, JobState.COMPLETED, None),
        (9, JobState.FAILED, Reason.EXIT_CODE),
        (137, JobState.FAILED, Reason.SIGNAL),
    ],
)
def test_a_foreign_job_has_its_exit_code(
    executor: JobExecutor, code: int, state: JobState, reason: Reason | None
) -> None:
    job = attach(executor, sbatch(f"sleep 1; exit {code}"))

    status = final_status(job)

    assert (status.state, status.exit_code, status.reason) == (state, code, reason)
    assert status.evidence is Evidence.QUEUE


def test_a_foreign_job_can_be_cancelled(executor: JobExecutor) -> None:
    job = attach(executor, sbatch("exec sleep 1000"))

    job.cancel()

    status = final_status(job)
    assert (status.state, status.reason) == (JobState.CANCELED, Reason.CANCELLED)


@EITHER_WAY
def test_an_id_that_never_existed_is_not_verified(executor: JobExecutor) -> None:
    status = final_status(attach(executor, "99999999"))

    assert (status.state, status.reason) == (JobState.FAILED, Reason.ATTACH_UNVERIFIED)
    assert (status.exit_code, status.evidence) == (None, Evidence.ABSENCE)


#: Options of sbatch for jobs with unusual lines in squeue's output.
STRANGE = {
    "a name of several lines": ["--job-name=a|b\n1|1|RUNNING|0|0|x|x|x||\t\x01c"],
    "a comment of several lines": ["--comment=one|two\n\n7|jpsi-x-1\nthree\t"],
    "a name that is an option": ["--job-name=--me"],
    "no name worth the name": ["--job-name=   "],
    "a comment of separators": [f"--comment={'|' * 200}"],
}


@EITHER_WAY
def test_unusual_jobs_do_not_delay_the_updates_of_others(executor: JobExecutor, tmp_path: Path) -> None:
    strange = {name: sbatch("exec sleep 1000", "--hold", *options) for name, options in STRANGE.items()}
    # its reason is a sentence: job requeued in held state
    strange["a reason with blanks"] = again = sbatch("exec sleep 1000", "--requeue")
    while command("squeue", "-h", "-o", "%T", "-j", again).strip() != "RUNNING":
        pass
    command("scontrol", "requeuehold", again)
    wait_until_pending(again)
    watched = {name: attach(executor, job_id) for name, job_id in strange.items()}
    plain = attach(executor, sbatch("sleep 1; exit 9"))
    own = job_with_proof(tmp_path / "proof", 137)
    executor.submit(own)

    assert final_status(plain).exit_code == 9
    assert final_status(own).exit_code == 137
    for name, job in watched.items():
        assert job.status.state is JobState.QUEUED, name
    reason = executor.info(watched["a reason with blanks"]).details["slurm.reason"]
    assert reason == "job requeued in held state"

    for job_id in strange.values():
        command("scancel", job_id)
    for name, job in watched.items():
        assert final_status(job).state is JobState.CANCELED, name
