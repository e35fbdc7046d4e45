"""Many jobs at once in whatever Flux instance the environment leads to: one command submits a hundred."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_flux import FluxConfig
from jpsi_testing.conformance.base import shell

PATIENCE = 120
# Submits many jobs at once, each of which proves that it ran and ends with a code of its own; or finds them.
CLIENT = r"""
import sys
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi_flux import FluxConfig

root, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = FluxConfig(work_directory=root / "work", array_size=20, grace=timedelta(seconds=5))
executor = jpsi.JobExecutor.get_instance("flux", config=config)
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
        status = job.wait(120)
        print(job.spec.arguments[3], None if status is None else status.exit_code, flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _instance() -> None:
    """Skip the tests where there is no instance."""
    asked = ["flux", "jobs", "--json"]
    if shutil.which("flux") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("no Flux instance answers")


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = FluxConfig(work_directory=tmp_path / "work", grace=timedelta(seconds=5))
    with JobExecutor.get_instance("flux", config=config) as executor:
        yield executor


def end(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None
    return status


def test_each_of_many_has_its_own_id_and_code(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}", name="a {b} c")) for number in range(120)]

    executor.submit_many(jobs)

    asked = ["flux", "jobs", "-a", "-c0", "--no-header", "--format={id.dec} {name}"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    names = dict(line.split(" ", 1) for line in told.splitlines())
    assert [names[job.native_id or ""] for job in jobs] == [f"a {{b}} c jpsi-{job.id}-1" for job in jobs]
    assert [end(job).exit_code for job in jobs] == [number % 100 for number in range(120)]


def test_of_many_that_wait_some_are_cancelled(executor: JobExecutor) -> None:
    jobs = [Job(shell("sleep 1000")) for _ in range(60)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs[1::2])
    assert {end(job).state for job in jobs[1::2]} == {JobState.CANCELED}
    assert not any(job.status.final for job in jobs[::2])

    executor.cancel_many(jobs)
    assert {end(job).state for job in jobs} == {JobState.CANCELED}


def test_killed_client_loses_no_job_and_runs_none_twice(tmp_path: Path) -> None:
    instants = random.Random(20261122)
    told = []
    for round_ in range(6):
        root = tmp_path / str(round_)
        root.mkdir()
        told.append(_crash(root, instants.uniform(0.0, 1.5)))

    assert [line for line in told if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """One round; returns what was seen, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, str(root)]
    client = subprocess.Popen([*program, "submit", "60"], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    asked = [*program, "recover", "0"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    if found.returncode != 0:
        pytest.fail(found.stderr)
    codes = dict(line.split() for line in found.stdout.splitlines())
    proof = root / "proof"
    ran = proof.read_text().split() if proof.exists() else []
    wrong = {number: code for number, code in codes.items() if number != code}
    twice = {number for number in ran if ran.count(number) > 1}
    mark = "!" if wrong or twice or set(codes) - set(ran) else ""
    return f"killed after {instant:.3f} s: {len(codes)} jobs, {len(ran)} runs, {wrong=}, {twice=} {mark}"
