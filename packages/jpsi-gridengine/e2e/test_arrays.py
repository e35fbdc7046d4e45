"""Bulk submission on a real Grid Engine: array tasks are jobs like any other."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import (
    Dependency,
    DependencyKind,
    Job,
    JobAttributes,
    JobExecutor,
    JobState,
    JobStatus,
    Reason,
)
from jpsi_gridengine import GridEngineConfig
from jpsi_testing.conformance.base import Gate, Proof, shell

PATIENCE = 300.0

# Submits many jobs at once, or finds them again. Each job proves that it ran and has its own exit code.
CLIENT = r"""
import sys
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi_gridengine import GridEngineConfig

root, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = GridEngineConfig(work_directory=root / "work", array_size=40, grace=timedelta(seconds=5))
executor = jpsi.JobExecutor.get_instance("gridengine", config=config)
if what == "submit":
    text = 'echo "$1" >>"$2"; while [ ! -e "$3" ]; do sleep 0.1; done; exit "$1"'
    specs = [["-c", text, "sh", str(number), f"{root}/proof", f"{root}/gate"] for number in range(count)]
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/sh", spec)) for spec in specs]
    print("begun", flush=True)
    executor.submit_many(jobs)
    print("submitted", flush=True)
else:
    jobs = executor.recover()
    Path(root, "gate").touch()
    executor.submit_many(job for job in jobs if job.status.state is jpsi.JobState.NEW)
for job in jobs:
    status = job.wait(300)
    print(job.spec.arguments[3], None if status is None else status.exit_code, flush=True)
"""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = GridEngineConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        grace=timedelta(seconds=5),
    )
    with JobExecutor.get_instance("gridengine", config=config) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    """Return the final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, f"{job.native_id} has not ended: {job.status}"
    return status


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def array_of(job: Job) -> str:
    return (job.native_id or "").partition(".")[0]


def test_tasks_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number}")) for number in range(60)]

    executor.submit_many(jobs)

    array = array_of(jobs[0])
    assert [job.native_id for job in jobs] == [f"{array}.{index}" for index in range(1, 61)]
    assert exit_codes(jobs) == list(range(60))


def test_a_task_has_its_own_variables(executor: JobExecutor) -> None:
    text = 'echo "$JOB_ID.$SGE_TASK_ID $WHO $1"'
    jobs = [Job(shell(text, f"a '{n}'", environment={"WHO": f"w{n}"})) for n in range(3)]

    executor.submit_many(jobs)

    exit_codes(jobs)
    outputs = [None if job.streams is None else job.streams.stdout.read_text() for job in jobs]
    assert outputs == [f"{job.native_id} w{n} a '{n}'\n" for n, job in enumerate(jobs)]


def test_tasks_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(40)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    # those of the last quarter are pending, as there are fewer slots
    executor.cancel_many([*jobs[:2], jobs[30], *jobs[32:]])

    cancelled = [final_status(job) for job in (*jobs[:2], jobs[30], *jobs[32:])]
    assert {status.state for status in cancelled} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[2:30]) == list(range(2, 30))
    assert final_status(jobs[31]).exit_code == 31


def test_all_pending_jobs_are_cancelled(executor: JobExecutor) -> None:
    held = JobAttributes(custom_attributes={"gridengine.h": True})
    jobs = [Job(shell("sleep 1000", attributes=held)) for _ in range(1000)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs)

    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_a_task_is_held_and_released(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(30)]
    executor.submit_many(jobs)
    executor.hold(jobs[29])
    gate.open()

    assert exit_codes(jobs[:29]) == list(range(29))
    seen = executor.info(jobs[29])
    assert seen is not None
    assert seen.details["gridengine.state"] == "hqw"
    executor.release(jobs[29])
    assert final_status(jobs[29]).exit_code == 29


def test_array_elements_ended_by_others_are_reported(executor: JobExecutor) -> None:
    jobs = [Job(shell("exec sleep 1000")) for _ in range(30)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    subprocess.run(["qdel", jobs[0].native_id or "", jobs[29].native_id or ""], check=True)

    running = final_status(jobs[0])
    assert (running.state, running.reason, running.exit_code) == (JobState.FAILED, Reason.SIGNAL, 137)
    assert not jobs[28].status.final
    executor.cancel_many(jobs[1:29])
    assert {final_status(job).state for job in jobs[1:29]} == {JobState.CANCELED}
    # Grid Engine reports nothing about tasks that were deleted before they ran
    assert final_status(jobs[29]).reason is Reason.LOST


def test_a_task_of_another_client_can_be_attached_to(executor: JobExecutor, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nsleep 5; exit $SGE_TASK_ID\n")
    qsub = ["qsub", "-terse", "-S", "/bin/sh", "-o", "/dev/null", "-e", "/dev/null", "-t", "1-3", str(script)]
    printed = subprocess.run(qsub, check=True, capture_output=True, text=True).stdout
    array = printed.partition(".")[0]
    whole, *tasks = [Job() for _ in range(4)]

    executor.attach_many([(whole, array), *((job, f"{array}.{n}") for n, job in enumerate(tasks, 1))])

    assert whole.wait(PATIENCE, target_states=JobState.ACTIVE)
    assert exit_codes(tasks) == [1, 2, 3]


def test_a_job_may_depend_on_a_task(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    proof = Proof(tmp_path / "proof")
    jobs = [Job(gate.job(number)) for number in range(3)]
    executor.submit_many(jobs)
    attributes = JobAttributes(after=[Dependency(jobs[1], DependencyKind.ANY)])
    after = Job(shell(Proof.WRITE, proof.path, attributes=attributes))
    executor.submit(after)

    time.sleep(3)
    assert proof.runs == 0
    gate.open()
    assert final_status(after).state is JobState.COMPLETED


def test_killed_client_loses_no_task_and_runs_none_twice(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    instants = random.Random(20261122)
    rounds = []
    for round_ in range(30 if request.config.getoption("--long") else 4):
        root = tmp_path / str(round_)
        root.mkdir()
        rounds.append(_crash(root, instants.uniform(0.0, 0.25)))

    assert [line for line in rounds if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, str(root)]
    # with code 99 Grid Engine would requeue a job
    client = subprocess.Popen([*program, "submit", "90"], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    arrays = root / "work" / "gridengine" / "arrays"
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
    mark = "!" if wrong or twice or set(codes) != set(ran) else ""
    seen = f"{len(written)} arrays, {len(codes)} jobs, {len(ran)} runs"
    return f"killed after {instant:.3f} s: {seen}, wrong {wrong}, twice {twice} {mark}"
