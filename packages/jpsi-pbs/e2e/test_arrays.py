"""Bulk submission on a real PBS or Torque: array elements are jobs like any other."""

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

from jpsi import Job, JobAttributes, JobExecutor, JobState, JobStatus, Reason, SubmitException
from jpsi_pbs import PbsConfig
from jpsi_testing.conformance.base import Gate, shell

PATIENCE = 300.0

# Submits many jobs at once, or finds them again. Each job proves that it ran and has its own exit code.
CLIENT = r"""
import sys
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi_pbs import PbsConfig

system, root, what, count = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
config = PbsConfig(work_directory=root / "work", array_size=40, grace=timedelta(seconds=15))
executor = jpsi.JobExecutor.get_instance(system, config=config)
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
def executor(server_system: str, tmp_path: Path) -> Iterator[JobExecutor]:
    config = PbsConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        grace=timedelta(seconds=15),
    )
    with JobExecutor.get_instance(server_system, config=config) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    """Return the final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, f"{job.native_id} has not ended: {job.status}"
    return status


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def test_elements_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number}")) for number in range(60)]

    executor.submit_many(jobs)

    number, _, server = (jobs[0].native_id or "").replace("[1]", "[]").partition("[]")
    assert [job.native_id for job in jobs] == [f"{number}[{index}]{server}" for index in range(1, 61)]
    assert exit_codes(jobs) == list(range(60))


def test_elements_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(40)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    executor.cancel_many([*jobs[:2], jobs[30], *jobs[32:]])

    cancelled = [final_status(job) for job in (*jobs[:2], jobs[30], *jobs[32:])]
    assert {status.state for status in cancelled} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[2:30]) == list(range(2, 30))
    assert final_status(jobs[31]).exit_code == 31


def test_all_held_jobs_are_cancelled(executor: JobExecutor) -> None:
    held = JobAttributes(custom_attributes={f"{executor.name}.h": True})
    jobs = [Job(shell("sleep 1000", attributes=held)) for _ in range(1000)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs)

    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_an_element_is_held_or_the_refusal_is_reported(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(30)]
    executor.submit_many(jobs)
    try:
        executor.hold(jobs[29])
    except SubmitException as e:
        assert executor.name == "pbs"
        assert "the array as a whole" in str(e)  # noqa: PT017  Torque holds it
        gate.open()
    else:
        gate.open()
        assert exit_codes(jobs[:29]) == list(range(29))
        executor.release(jobs[29])

    assert exit_codes(jobs) == list(range(30))


def test_array_elements_ended_by_others_are_reported(executor: JobExecutor) -> None:
    jobs = [Job(shell("exec sleep 1000")) for _ in range(30)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    subprocess.run(["qdel", jobs[0].native_id or "", jobs[29].native_id or ""], check=True)

    assert final_status(jobs[0]).state is JobState.CANCELED
    assert not jobs[28].status.final
    executor.cancel_many(jobs[1:29])
    assert {final_status(job).state for job in jobs[1:29]} == {JobState.CANCELED}
    deleted = final_status(jobs[29])
    # PBS reports nothing about elements that were deleted before they began
    assert (deleted.state, deleted.reason) in {
        (JobState.FAILED, Reason.LOST),
        (JobState.CANCELED, Reason.CANCELLED),
    }


def test_an_element_of_another_client_can_be_attached_to(executor: JobExecutor, tmp_path: Path) -> None:
    option, variable = ("-J", "PBS_ARRAY_INDEX") if executor.name == "pbs" else ("-t", "PBS_ARRAYID")
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nsleep 5; exit ${variable}\n")
    qsub = ["qsub", "-o", "/dev/null", "-e", "/dev/null", option, "1-3", str(script)]
    array = subprocess.run(qsub, check=True, capture_output=True, text=True).stdout.strip()
    jobs = [Job() for _ in range(3)]

    executor.attach_many((job, array.replace("[]", f"[{index}]")) for index, job in enumerate(jobs, 1))

    assert exit_codes(jobs) == [1, 2, 3]


def test_killed_client_loses_no_element_and_runs_none_twice(
    server_system: str, tmp_path: Path, is_long: bool
) -> None:
    instants = random.Random(20261122)
    rounds = []
    for round_ in range(100 if is_long else 6):
        root = tmp_path / str(round_)
        root.mkdir()
        rounds.append(_crash(server_system, root, instants.uniform(0.0, 0.15)))

    assert [line for line in rounds if "!" in line] == []


def _crash(system: str, root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, system, str(root)]
    client = subprocess.Popen([*program, "submit", "100"], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    arrays = root / "work" / system / "arrays"
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
