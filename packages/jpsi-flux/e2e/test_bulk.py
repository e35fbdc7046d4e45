"""Bulk submission in the Flux instance of the environment: one command submits a hundred jobs."""

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
# Submits many jobs at once, or finds them again. Each job proves that it ran and has its own exit code.
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
def _require_instance() -> None:
    """Skip the tests without an instance."""
    list_jobs = ["flux", "jobs", "--json"]
    if shutil.which("flux") is None or subprocess.run(list_jobs, capture_output=True, check=False).returncode:
        pytest.skip("no Flux instance answers")


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = FluxConfig(work_directory=tmp_path / "work", grace=timedelta(seconds=5))
    with JobExecutor.get_instance("flux", config=config) as executor:
        yield executor


def final_status(job: Job) -> JobStatus:
    status = job.wait(PATIENCE)
    assert status is not None
    return status


def test_each_of_many_has_its_own_id_and_code(executor: JobExecutor) -> None:
    jobs = [Job(shell(f"exit {number % 100}", name="a {b} c")) for number in range(120)]

    executor.submit_many(jobs)

    list_jobs = ["flux", "jobs", "-a", "-c0", "--no-header", "--format={id.dec} {name}"]
    listing = subprocess.run(list_jobs, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    names = dict(line.split(" ", 1) for line in listing.splitlines())
    assert [names[job.native_id or ""] for job in jobs] == [f"a {{b}} c jpsi-{job.id}-1" for job in jobs]
    assert [final_status(job).exit_code for job in jobs] == [number % 100 for number in range(120)]


def test_some_of_many_pending_jobs_are_cancelled(executor: JobExecutor) -> None:
    jobs = [Job(shell("sleep 1000")) for _ in range(60)]
    executor.submit_many(jobs)

    executor.cancel_many(jobs[1::2])
    assert {final_status(job).state for job in jobs[1::2]} == {JobState.CANCELED}
    assert not any(job.status.final for job in jobs[::2])

    executor.cancel_many(jobs)
    assert {final_status(job).state for job in jobs} == {JobState.CANCELED}


def test_killed_client_loses_no_job_and_runs_none_twice(tmp_path: Path) -> None:
    instants = random.Random(20261122)
    rounds = []
    for round_ in range(6):
        root = tmp_path / str(round_)
        root.mkdir()
        rounds.append(_crash(root, instants.uniform(0.0, 1.5)))

    assert [line for line in rounds if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    program = [sys.executable, "-c", CLIENT, str(root)]
    client = subprocess.Popen([*program, "submit", "60"], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "begun\n"
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    client.communicate()
    recover = [*program, "recover", "0"]
    found = subprocess.run(recover, capture_output=True, text=True, check=False, timeout=300)
    if found.returncode != 0:
        pytest.fail(found.stderr)
    codes = dict(line.split() for line in found.stdout.splitlines())
    proof = root / "proof"
    ran = proof.read_text().split() if proof.exists() else []
    wrong = {number: code for number, code in codes.items() if number != code}
    twice = {number for number in ran if ran.count(number) > 1}
    mark = "!" if wrong or twice or set(codes) - set(ran) else ""
    return f"killed after {instant:.3f} s: {len(codes)} jobs, {len(ran)} runs, {wrong=}, {twice=} {mark}"
