"""Bulk submission on the LSF on PATH: array elements are jobs like any other."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_lsf

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_testing.conformance.base import Gate, shell

pytestmark = pytest.mark.skipif(shutil.which("bsub") is None, reason="no bsub is on PATH")

PATIENCE = 300
# Submits many jobs at once, or finds them again. Each job proves that it ran and has its own exit code.
CLIENT = r"""
import sys
from pathlib import Path

import attrs
import jpsi
import real_lsf

root, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = attrs.evolve(real_lsf.config(root / "work"), array_size=20)
executor = jpsi.JobExecutor.get_instance("lsf", config=config)
text = 'echo "$1" >>"$2"; exit "$1"'
if what == "submit":
    specs = [["-c", text, "sh", str(number), f"{root}/proof"] for number in range(count)]
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/sh", spec)) for spec in specs]
    print("begun", flush=True)
    executor.submit_many(jobs)
else:
    jobs = executor.recover()
    executor.submit_many(job for job in jobs if job.status.state is jpsi.JobState.NEW)
    for job in jobs:
        status = job.wait(300)
        print(job.spec.arguments[3], None if status is None else status.exit_code, flush=True)
"""


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("lsf", config=real_lsf.config(tmp_path / "work")) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None
    return status


def exit_codes(jobs: list[Job]) -> list[int | None]:
    return [final_status(job).exit_code for job in jobs]


def test_elements_have_codes_and_ids_of_their_own(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}", name="a b")) for number in range(120)]

    executor.submit_many(jobs)

    array = (jobs[0].native_id or "").partition("[")[0]
    assert [job.native_id for job in jobs] == [f"{array}[{index}]" for index in range(1, 121)]
    assert exit_codes(jobs) == [number % 100 for number in range(120)]


def test_elements_are_cancelled_before_and_while_they_run(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(40)]
    executor.submit_many(jobs)
    jobs[0].wait(PATIENCE, target_states=JobState.ACTIVE)

    executor.cancel_many(jobs[::2])

    assert {final_status(job).state for job in jobs[::2]} == {JobState.CANCELED}
    gate.open()
    assert exit_codes(jobs[1::2]) == list(range(1, 40, 2))


def test_an_element_is_held_and_released(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(number)) for number in range(20)]
    executor.submit_many(jobs)
    executor.hold(jobs[19])
    gate.open()

    assert exit_codes(jobs[:19]) == list(range(19))
    seen = executor.info(jobs[19])
    assert seen is not None
    assert seen.native_state == "PSUSP"
    executor.release(jobs[19])
    assert final_status(jobs[19]).exit_code == 19


def test_an_element_can_be_attached_to_and_waited_for(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"sleep 4; exit {number}")) for number in range(3)]
    executor.submit_many(jobs)
    other = Job()

    executor.attach(other, jobs[1].native_id or "")

    assert final_status(other).exit_code == 1
    assert exit_codes(jobs) == [0, 1, 2]


def test_killed_client_loses_no_element_and_runs_none_twice(tmp_path: Path) -> None:
    instants = random.Random(20261122)
    rounds = []
    for round_ in range(5):
        root = tmp_path / str(round_)
        root.mkdir()
        rounds.append(_crash(root, instants.uniform(0.0, 0.15)))

    assert [line for line in rounds if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, str(root)]
    here = Path(__file__).parent
    client = subprocess.Popen([*program, "submit", "60"], stdout=subprocess.PIPE, text=True, cwd=here)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    found = subprocess.run(
        [*program, "recover", "0"], capture_output=True, text=True, check=False, timeout=400, cwd=here
    )
    if found.returncode != 0:
        pytest.fail(found.stderr)
    codes = dict(line.split() for line in found.stdout.splitlines())
    proof = root / "proof"
    ran = proof.read_text().split() if proof.exists() else []
    wrong = {number: code for number, code in codes.items() if number != code}
    twice = {number for number in ran if ran.count(number) > 1}
    mark = "!" if wrong or twice or set(codes) != set(ran) else ""
    return f"killed after {instant:.3f} s: {len(codes)} jobs, {len(ran)} runs, {wrong=}, {twice=} {mark}"
