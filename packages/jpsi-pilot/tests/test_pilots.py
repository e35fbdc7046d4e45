"""The life of pilots on this machine: started for pending jobs, ended when idle, and private to a client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi import Job, JobExecutor, JobSpec, JobState, ResourceSpecV1
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually
from pilot_support import end_agent, wait_for_node

PATIENCE = 120.0

#: Submits a job and prints its native id; exits when its input ends.
_CLIENT = """\
import sys
from test_pilots import pilots
import jpsi
executor = pilots(sys.argv[1], shared=bool(sys.argv[2]))
job = jpsi.Job(jpsi.JobSpec(sys.argv[3], sys.argv[4:]))
executor.submit(job)
print(job.native_id, flush=True)
sys.stdin.read()
"""


def pilots(work_directory: Path | str, **changes: Any) -> JobExecutor:
    """Return an executor with pilots of one core."""
    quick = {
        "kill_delay": timedelta(seconds=0.5),
        "shortest_interval": timedelta(seconds=0.1),
        "longest_interval": timedelta(seconds=0.3),
        "grace": timedelta(seconds=1),
        "idle_time": timedelta(seconds=30),
    }
    config = PilotConfig(work_directory=work_directory, **(quick | changes))
    return JobExecutor.get_instance("pilot", config=config)


@pytest.fixture
def work_directory(tmp_path: Path) -> Iterator[Path]:
    """Yield a work directory; end its agent after the test."""
    yield tmp_path / "work"
    end_agent(tmp_path / "work" / "pilots")


@pytest.fixture
def client(work_directory: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts a program with pilots that submits a job; returns it, and the job's native id."""
    programs = []

    def start(*command: str, shared: str = "") -> tuple[subprocess.Popen[str], str]:
        words = [sys.executable, "-c", _CLIENT, str(work_directory), shared, *command]
        path = ":".join(it for it in sys.path if it)
        program = subprocess.Popen(
            ["env", f"PYTHONPATH={path}", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        programs.append(program)
        assert program.stdout is not None
        return program, program.stdout.readline().strip()

    yield start
    for program in programs:
        program.kill()
        with program:
            pass


def submitted(executor: JobExecutor, *jobs: Job) -> None:
    for job in jobs:
        executor.submit(job)


def attached(executor: JobExecutor, native_id: str) -> Job:
    job = Job()
    executor.attach(job, native_id)
    return job


def exit_code(job: Job) -> int | None:
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status.exit_code


def folders(work_directory: Path) -> list[str]:
    """Return the folders of the existing pilots."""
    return sorted(it.name for it in (work_directory / "pilots" / "pilots").glob("*"))


def test_as_many_pilots_start_as_jobs_can_use_and_they_end_when_idle(
    work_directory: Path, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    with pilots(work_directory, max_pilots=2, idle_time=timedelta(seconds=2)) as executor:
        jobs = [Job(gate.job()) for _ in range(3)]
        submitted(executor, *jobs)

        where = {wait_for_node(executor, job) for job in jobs[:2]}
        assert len(where) == 2, "one core each"
        assert folders(work_directory) == ["1", "2"], "no more than allowed"
        assert jobs[2].status.state is JobState.QUEUED
        gate.open()
        assert [exit_code(job) for job in jobs] == [0] * 3

        assert eventually(lambda: folders(work_directory) == [])


def test_when_a_client_is_killed_another_finds_its_jobs_and_uses_its_pilots(
    work_directory: Path, tmp_path: Path, client: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
    text = f"{Proof.WRITE}; shift; {Gate.WAIT}; exit 3"
    program, native_id = client("/bin/sh", "-c", text, "sh", str(proof.path), str(gate.path))
    assert eventually(lambda: proof.runs == 1)

    program.kill()
    program.wait()
    with pilots(work_directory) as executor:
        (found,) = executor.recover()
        second = Job(JobSpec("/bin/true"))
        executor.submit(second)
        gate.open()

        assert found.native_id == native_id
        assert (exit_code(found), exit_code(second)) == (3, 0)
    assert proof.runs == 1
    assert folders(work_directory) == ["1"]


@pytest.mark.parametrize(("shared", "expected"), [("", ["1", "2"]), ("yes", ["1"])], ids=["own", "shared"])
def test_a_pilot_takes_the_jobs_of_other_programs_only_if_it_is_shared(
    work_directory: Path,
    tmp_path: Path,
    client: Callable[..., tuple[subprocess.Popen[str], str]],
    shared: str,
    expected: list[str],
) -> None:
    _, theirs = client("/bin/true", shared=shared)
    with pilots(work_directory, shared=bool(shared)) as executor:
        assert exit_code(attached(executor, theirs)) == 0
        ours = Job(JobSpec("/bin/true"))
        executor.submit(ours)

        assert exit_code(ours) == 0
        assert folders(work_directory) == expected


def test_startup_lines_are_run_by_each_pilot(work_directory: Path, tmp_path: Path) -> None:
    with pilots(work_directory, startup=(f"echo up >>{tmp_path}/startup",)) as executor:
        job = Job(JobSpec("/bin/true"))
        executor.submit(job)

        assert exit_code(job) == 0
    assert (tmp_path / "startup").read_text() == "up\n"


def test_jobs_that_run_beside_each_other_have_gpus_of_their_own(
    work_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gate = Gate(tmp_path / "gate")
    text = f'echo "$CUDA_VISIBLE_DEVICES" >"$1"; shift; {Gate.WAIT}'
    one = ResourceSpecV1(gpu_cores_per_process=1)
    with pilots(work_directory, cores_per_node=2, gpus_per_node=2) as executor:
        lines = [tmp_path / name for name in ("a", "b")]
        jobs = [Job(shell(text, it, gate.path, resources=one)) for it in lines]
        submitted(executor, *jobs)
        for job in jobs:
            wait_for_node(executor, job)
        gate.open()

        assert [exit_code(job) for job in jobs] == [0, 0]
    assert sorted(it.read_text() for it in lines) == ["0\n", "1\n"]
