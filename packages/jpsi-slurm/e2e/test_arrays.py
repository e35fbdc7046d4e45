"""Bulk submission on a real Slurm: array elements are jobs like any other."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_slurm import PATIENCE, attach, command, final_status, native_id, submit_from_another_process

import jpsi
from jpsi import Evidence, Job, JobAttributes, JobExecutor, JobState
from jpsi_testing.conformance.base import Gate, Proof, shell

# Submits many jobs at once, or finds them again. Each job proves that it ran and has its own exit code.
CLIENT = r"""
import sys
from pathlib import Path

import jpsi
import jpsi_engine.job_store
from jpsi_slurm import SlurmConfig

root, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = SlurmConfig(work_directory=root / "work", array_size=40)
executor = jpsi.JobExecutor.get_instance("slurm", config=config)
text = 'echo "$1" >>"$2"; sleep "0.$(($1 % 10))"; exit "$1"'
if what == "submit":
    specs = [["-c", text, "sh", str(number), f"{root}/proof"] for number in range(count)]
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/sh", spec)) for spec in specs]
    print("begun", flush=True)
    executor.submit_many(jobs)
    print("submitted", flush=True)
else:
    # what the client saw end before it was killed is final on disk, and not recovered
    found = jpsi_engine.job_store.jobs(also=[root / "work"])
    written = [job for job in found if job.origin.path.is_relative_to(root)]
    jobs = executor.recover()
    recovered = {job.id for job in jobs}
    for job in written:
        if job.status.final and job.id not in recovered:
            print(job.spec.arguments[3], job.status.exit_code, flush=True)
    executor.submit_many(job for job in jobs if job.status.state is jpsi.JobState.NEW)
for job in jobs:
    status = job.wait(300)
    print(job.spec.arguments[3], None if status is None else status.exit_code, flush=True)
"""


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def cpus() -> int:
    """Return how many jobs with one CPU this Slurm runs at a time."""
    _, _, _, total = command("sinfo", "--noheader", "--format=%C").strip().split("/")
    return int(total)


def test_elements_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}")) for number in range(200)]

    executor.submit_many(jobs)

    array = native_id(jobs[0]).partition("_")[0]
    assert [native_id(job) for job in jobs] == [f"{array}_{index}" for index in range(1, 201)]
    assert exit_codes(jobs) == [number % 100 for number in range(200)]


def test_elements_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(cpus() + 10)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    executor.cancel_many([*jobs[:2], *jobs[-10:]])

    cancelled = [final_status(job) for job in (*jobs[:2], *jobs[-10:])]
    assert {status.state for status in cancelled} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[2:-10]) == list(range(2, len(jobs) - 10))


def test_all_pending_jobs_are_cancelled(executor: JobExecutor) -> None:
    jobs = [Job(shell("sleep 1000")) for _ in range(300)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs)

    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_an_element_is_held_and_released(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    first = Job(gate.job())
    executor.submit(first)
    # pending, however many CPUs there are
    jobs = [Job(shell(f"exit {code}", attributes=JobAttributes(after=[first]))) for code in range(5)]
    executor.submit_many(jobs)
    executor.hold(jobs[4])
    gate.open()

    assert exit_codes(jobs[:4]) == list(range(4))
    seen = executor.info(jobs[4])
    assert seen is not None
    # the last snapshot may also name the reasons of other pending elements
    assert "JobHeldUser" in seen.details["slurm.reason"].split(",")
    executor.release(jobs[4])
    assert final_status(jobs[4]).exit_code == 4


def test_array_elements_ended_by_slurm_are_reported(executor: JobExecutor, tmp_path: Path) -> None:
    proofs = [Proof(tmp_path / f"proof{number}") for number in range(3)]
    jobs = [Job(shell(f"{Proof.WRITE}; exec sleep 1000", proof.path)) for proof in proofs]
    executor.submit_many(jobs)
    for job in jobs:
        job.wait(PATIENCE, target_states=JobState.ACTIVE)

    command("scancel", native_id(jobs[1]))
    command("scontrol", "requeue", native_id(jobs[2]))

    status = final_status(jobs[1])
    assert (status.state, status.evidence) == (JobState.CANCELED, Evidence.QUEUE)
    assert not jobs[0].status.final
    executor.cancel_many([jobs[0], jobs[2]])
    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_an_element_of_another_client_can_be_attached_to(executor: JobExecutor, tmp_path: Path) -> None:
    """By the id that Slurm shows, and by the element's own number."""
    jobs = [Job(shell(f"sleep 2; exit {number}")) for number in range(3)]
    executor.submit_many(jobs)
    jobs[1].wait(PATIENCE, target_states=JobState.ACTIVE)
    listed = command("squeue", "-h", "-o", "%A", "-j", native_id(jobs[1])).strip()

    others = [attach(executor, native_id(jobs[1])), attach(executor, listed)]

    assert exit_codes(others) == [1, 1]
    assert submit_from_another_process(tmp_path / "other", "exit 0").isdecimal()


def test_killed_client_loses_no_element_and_runs_none_twice(tmp_path: Path, is_long: bool) -> None:
    instants = random.Random(20261122)
    rounds = []
    for round_ in range(30 if is_long else 4):
        root = tmp_path / str(round_)
        root.mkdir()
        # an element or two may have ended by then
        rounds.append(_crash(root, instants.uniform(0.0, 0.25)))

    assert [line for line in rounds if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, str(root)]
    client = subprocess.Popen([*program, "submit", "100"], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    arrays = root / "work" / "slurm" / "arrays"
    written = list(arrays.iterdir()) if arrays.exists() else []
    found = subprocess.run(
        [*program, "recover", "0"], capture_output=True, text=True, check=False, timeout=400
    )
    if found.returncode != 0:
        pytest.fail(found.stderr)
    codes = dict(line.split() for line in found.stdout.splitlines())
    proof = root / "proof"
    ran = proof.read_text().split() if proof.exists() else []
    wrong = {number: code for number, code in codes.items() if number != code}
    twice = {number for number in ran if ran.count(number) > 1}
    strange = set(ran) - codes.keys()
    mark = "!" if wrong or twice or strange or set(codes) != set(ran) else ""
    seen = f"{len(written)} arrays, {len(codes)} jobs, {len(ran)} runs"
    return f"killed after {instant:.3f} s: {seen}, wrong {wrong}, twice {twice}, strange {strange} {mark}"


def test_a_problem_of_one_job_is_reported_and_the_others_run(executor: JobExecutor) -> None:
    jobs = [Job(shell("exit 1")), Job(shell("exit 2", name="n" * 2000)), Job(shell("exit 3"))]

    with pytest.raises(jpsi.BulkException) as caught:
        executor.submit_many(jobs)

    assert list(caught.value.failed) == [jobs[1]]
    assert exit_codes([jobs[0], jobs[2]]) == [1, 3]
