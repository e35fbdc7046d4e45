"""The ends of jobs, which jpsi and Slurm's own records report alike."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import attrs
import pytest
from real_slurm import (
    OBEDIENT,
    PLAIN,
    STUBBORN,
    Control,
    command,
    custom,
    exit_code_in_accounting,
    exit_code_in_queue,
    final_status,
    native_id,
    running,
    sbatch,
    wait_for_proof,
    wait_until_pending,
)

from jpsi import Evidence, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi_testing.conformance.base import Proof, shell

CANCELLED = (JobState.CANCELED, Reason.CANCELLED)

# A job's command, its exit code, the reason of the failure, the signal if there was one, and the exit code of
# sacct, which is reduced by 128.
CODES = {
    "a code": ("exit 7", 7, Reason.EXIT_CODE, None, "7:0"),
    "a code above every signal's": ("exit 200", 200, Reason.EXIT_CODE, None, "72:0"),
    "a code that looks like a signal's": ("exit 137", 137, Reason.SIGNAL, 9, "9:0"),
    "a code from which 128 leaves nothing": ("exit 128", 128, Reason.EXIT_CODE, None, "0:0"),
    "killed": ("kill -9 $$", 137, Reason.SIGNAL, 9, "9:0"),
    "crashed": ("kill -SEGV $$", 139, Reason.SIGNAL, 11, "11:0"),
}


@pytest.mark.slurm(accounting=True)
def test_a_failed_job_has_its_exit_code_everywhere(executor: JobExecutor) -> None:
    jobs = {name: Job(shell(text)) for name, (text, *_) in CODES.items()}
    for job in jobs.values():
        executor.submit(job)

    for name, (_, code, reason, number, accounted) in CODES.items():
        status = final_status(jobs[name])
        assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, code, reason), name
        assert status.metadata.get("signal") == number, name
        assert status.evidence is Evidence.MARKER, name
        assert exit_code_in_queue(native_id(jobs[name])) == f"FAILED {code}:0", name
        assert exit_code_in_accounting(native_id(jobs[name])) == f"FAILED {accounted}", name


def test_a_completed_job_is_completed_in_slurm_as_well(executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/sleep", ["0.5"]))
    executor.submit(job)

    status = final_status(job)

    assert (status.state, status.exit_code, status.reason) == (JobState.COMPLETED, 0, None)
    assert status.evidence is Evidence.MARKER
    assert exit_code_in_queue(native_id(job)) == "COMPLETED 0:0"


@pytest.mark.parametrize("is_from_outside", [False, True], ids=["by jpsi", "from outside"])
def test_a_pending_job_is_cancelled(executor: JobExecutor, tmp_path: Path, is_from_outside: bool) -> None:
    proof = Proof(tmp_path / "proof")
    job = Job(attrs.evolve(proof.job(), attributes=custom(hold=True)))
    executor.submit(job)

    _cancel(job, is_from_outside)

    status = final_status(job)
    assert (status.state, status.reason, status.exit_code) == (*CANCELLED, None)
    assert status.evidence is Evidence.QUEUE
    assert status.metadata["slurm.state"] == "CANCELLED"
    assert proof.runs == 0


@pytest.mark.parametrize("is_from_outside", [False, True], ids=["by jpsi", "from outside"])
@pytest.mark.parametrize(("text", "code"), [(PLAIN, 143), (OBEDIENT, 0)], ids=["plain", "exits 0"])
def test_a_running_job_is_cancelled(
    executor: JobExecutor, tmp_path: Path, text: str, code: int, is_from_outside: bool
) -> None:
    job = running(executor, text, tmp_path / "proof")

    _cancel(job, is_from_outside)

    status = final_status(job)
    assert (status.state, status.reason, status.exit_code) == (*CANCELLED, code)
    assert status.evidence is Evidence.QUEUE
    assert status.metadata["slurm.state"] == "CANCELLED"
    assert exit_code_in_queue(native_id(job)).startswith("CANCELLED ")


def _cancel(job: Job, is_from_outside: bool) -> None:
    if is_from_outside:
        command("scancel", native_id(job))
    else:
        job.cancel()


def test_a_job_whose_script_is_killed_from_outside_was_killed(executor: JobExecutor, tmp_path: Path) -> None:
    """The runner dies before it can leave a marker; Slurm reports the signal."""
    # it must end: the Slurm of ci/ loses track of a process whose parent was killed
    job = running(executor, f"{Proof.WRITE}; exec sleep 20", tmp_path / "proof")

    command("scancel", "--signal=KILL", "--batch", native_id(job))

    status = final_status(job)
    assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, 137, Reason.SIGNAL)
    assert (status.metadata["signal"], status.metadata["marker"]) == (9, "missing")
    assert status.evidence is Evidence.QUEUE
    assert exit_code_in_queue(native_id(job)) == "FAILED 0:9"


@pytest.mark.parametrize("option", [(), ("--full",)], ids=["steps", "all"])
def test_slurm_takes_a_kill_from_outside_for_a_cancel(
    executor: JobExecutor, tmp_path: Path, option: tuple[str, ...]
) -> None:
    job = running(executor, PLAIN, tmp_path / "proof")

    command("scancel", "--signal=KILL", *option, native_id(job))

    status = final_status(job)
    assert (status.state, status.reason, status.evidence) == (*CANCELLED, Evidence.QUEUE)
    assert exit_code_in_queue(native_id(job)).startswith("CANCELLED ")


@pytest.mark.long
def test_a_walltime_timeout_is_reported(executor: JobExecutor, tmp_path: Path) -> None:
    jobs = _both(executor, tmp_path, JobAttributes(duration=timedelta(seconds=60)))

    ends = [final_status(job) for job in jobs]

    assert [(it.state, it.reason) for it in ends] == [(JobState.FAILED, Reason.TIMEOUT)] * 2
    assert [it.exit_code for it in ends] == [143, 0]
    assert [it.evidence for it in ends] == [Evidence.QUEUE] * 2


@pytest.mark.long
def test_a_failed_node_is_reported(executor: JobExecutor, tmp_path: Path, control: Control) -> None:
    attributes = custom(nodelist="node02", no_requeue=True)
    job = running(executor, PLAIN, tmp_path / "proof", attributes=attributes)

    control("kill-node node02")

    status = final_status(job)
    assert (status.state, status.reason) == (JobState.FAILED, Reason.NODE_FAIL)


@pytest.mark.alone
def test_preemption_is_reported(executor: JobExecutor, tmp_path: Path) -> None:
    jobs = _both(executor, tmp_path, JobAttributes(queue_name="yields"))

    sbatch("exit 0", "--partition=urgent", "--nodes=2", "--exclusive")

    ends = [final_status(job) for job in jobs]
    assert [(it.state, it.reason) for it in ends] == [(JobState.FAILED, Reason.PREEMPTED)] * 2
    assert [it.exit_code for it in ends] == [143, 0]
    assert [it.evidence for it in ends] == [Evidence.QUEUE] * 2
    assert [it.metadata["slurm.state"] for it in ends] == ["PREEMPTED"] * 2


def _both(executor: JobExecutor, directory: Path, attributes: JobAttributes) -> list[Job]:
    """Return two jobs: on SIGTERM one dies, and one exits with 0."""
    return [
        running(executor, PLAIN, directory / "plain", attributes=attributes),
        running(executor, OBEDIENT, directory / "obedient", attributes=attributes),
    ]


# The first run's reaction to SIGTERM, and the second run's exit code.
RUNS = {
    "exits 0, then 5": (OBEDIENT, 5),
    "exits 5, then 0": (OBEDIENT.replace("exit 0", "exit 5"), 0),
    "dies, then 0": (PLAIN, 0),
    "dies, then 143": (PLAIN, 143),
    "is killed, then 0": (STUBBORN, 0),
}


@pytest.mark.parametrize(
    "is_preempted",
    [
        pytest.param(False, id="by scontrol"),
        pytest.param(True, id="by preemption", marks=[pytest.mark.long, pytest.mark.alone]),
    ],
)
def test_the_last_run_of_a_requeued_job_decides(
    executor: JobExecutor, tmp_path: Path, is_preempted: bool
) -> None:
    attributes = JobAttributes(queue_name="requeues", custom_attributes={"slurm.requeue": True})
    proofs = {name: Proof(tmp_path / str(number)) for number, name in enumerate(RUNS)}
    jobs, seen = {}, {}
    for name, (first, second) in RUNS.items():
        text = f'[ ! -s "$1" ] || {{ {Proof.WRITE}; exit {second}; }}; {first}'
        jobs[name] = job = Job(shell(text, proofs[name].path, attributes=attributes))
        seen[name] = statuses = []
        job.set_job_status_callback(lambda _, status, statuses=statuses: statuses.append(status))
        executor.submit(job)
    for proof in proofs.values():
        wait_for_proof(proof.path)

    if is_preempted:
        sbatch("exit 0", "--partition=urgent", "--nodes=2", "--exclusive")
    else:
        for job in jobs.values():
            command("scontrol", "requeue", native_id(job))

    for name, (_, second) in RUNS.items():
        status = final_status(jobs[name])
        assert status.exit_code == second, name
        assert status.state is (JobState.FAILED if second else JobState.COMPLETED), name
        assert status.evidence is Evidence.MARKER, name
        assert proofs[name].runs == 2, name
        states = [it.state for it in seen[name]]
        assert states == sorted(states, key=list(JobState).index), name
        assert status.metadata["requeued"], name
        expected = f"FAILED {second}:0" if second else "COMPLETED 0:0"
        assert exit_code_in_queue(native_id(jobs[name])) == expected, name


def test_a_requeued_job_that_is_cancelled_before_it_runs_again_was_cancelled(
    executor: JobExecutor, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    job = running(executor, OBEDIENT, proof)
    command("scontrol", "requeuehold", native_id(job))
    wait_until_pending(native_id(job))

    command("scancel", native_id(job))

    status = final_status(job)
    assert (status.state, status.reason) == CANCELLED
    assert Proof(proof).runs == 1
