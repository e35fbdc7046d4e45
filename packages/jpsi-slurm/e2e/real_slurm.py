"""Support for tests on a real Slurm: jobs, and queries without jpsi."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobStatus
from jpsi_testing.conformance.base import Proof, shell

#: Timeout in seconds, long enough for a busy machine.
PATIENCE = 240.0

#: Endless shell commands that prove that they run. On SIGTERM the first dies, the second exits with 0, as
#: programs do that save their state, and the third goes on. The second takes a moment for that: Slurm signals
#: the processes of a job one after the other, and one that returns 0 before its runner gets the signal has
#: completed (docs/decisions/0019).
PLAIN = f"{Proof.WRITE}; exec sleep 1000"
OBEDIENT = f"trap 'trap \"\" TERM; sleep 0.5; exit 0' TERM; {Proof.WRITE}; while :; do sleep 0.1; done"
STUBBORN = f'trap "" TERM; {Proof.WRITE}; while :; do sleep 0.1; done'

#: Sends a verb to the daemon of ci/slurm/control, which runs as root.
Control = Callable[[str], None]


def job_with_proof(path: Path, code: int, seconds: float = 0.0) -> Job:
    """Return a job that writes a line to a file, and after a while exits with this code."""
    return Job(shell(f"{Proof.WRITE}; sleep {seconds}; exit {code}", path))


def running(executor: JobExecutor, text: str, proof: Path, **fields: Any) -> Job:
    """Submit a job that runs one of the shell commands above, and wait until it runs."""
    job = Job(shell(text, proof, **fields))
    executor.submit(job)
    wait_for_proof(proof)
    return job


def wait_for_proof(proof: Path, times: int = 1) -> None:
    """Wait until a job has written its proof this many times."""
    for _ in _tries():
        if Proof(proof).runs >= times:
            return
    pytest.fail(f"{proof} is not there {times} times")


def final_status(job: Job) -> JobStatus:
    """Return the final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status


def run(executor: JobExecutor, spec: JobSpec) -> JobStatus:
    """Submit a job and return its final status."""
    job = Job(spec)
    executor.submit(job)
    return final_status(job)


# Submits a job and exits at once, like a killed client.
_CLIENT = """
import os, sys
from pathlib import Path
import jpsi
from jpsi_testing.conformance.base import shell
from jpsi_slurm import SlurmConfig

work_directory, text, *arguments = sys.argv[1:]
executor = jpsi.JobExecutor.get_instance("slurm", config=SlurmConfig(work_directory=Path(work_directory)))
job = jpsi.Job(shell(text, *arguments))
executor.submit(job)
print(job.native_id, flush=True)
os._exit(0)
"""


def submit_from_another_process(work_directory: Path, text: str, *arguments: object) -> str:
    """Submit a shell command from another process, which exits; return the native id."""
    words = [sys.executable, "-c", _CLIENT, str(work_directory), text, *map(str, arguments)]
    return command(*words).strip()


def attach(executor: JobExecutor, native_id: str) -> Job:
    """Return a job that is attached to this native id."""
    job = Job()
    executor.attach(job, native_id)
    return job


def custom(**options: object) -> JobAttributes:
    """Return attributes with these options of sbatch, with dashes written as underscores."""
    return JobAttributes(
        custom_attributes={f"slurm.{name.replace('_', '-')}": value for name, value in options.items()}
    )


def native_id(job: Job) -> str:
    """Return the native id of a submitted job."""
    assert job.native_id is not None
    return job.native_id


def command(*words: str) -> str:
    """Return the output of a command; a failed command fails the test."""
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout


def sbatch(text: str, *options: str) -> str:
    """Submit a script without jpsi; returns the job's id."""
    script = f"#!/bin/sh\n{text}\n"
    streams = ("--chdir=/", "--output=/dev/null", "--time=10")
    submitted = subprocess.run(
        ["sbatch", "--parsable", *streams, *options], input=script, capture_output=True, text=True, check=True
    )
    return submitted.stdout.strip()


def exit_code_in_queue(job_id: str) -> str:
    """Return a job's state and exit code in Slurm's controller, such as `FAILED 7:0`."""
    for _ in _tries():
        words = command("scontrol", "--oneliner", "show", "job", job_id).split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if fields["JobState"] not in _UNFINISHED:
            return f"{fields['JobState']} {fields['ExitCode']}"
    return pytest.fail(f"Slurm's job {job_id} has not ended")


def is_in_queue(job_id: str) -> bool:
    """Return True if Slurm's controller still knows a job."""
    squeue = subprocess.run(
        ["squeue", "-h", "-t", "all", "-j", job_id], capture_output=True, text=True, check=False
    )
    return bool(squeue.stdout.strip())


def wait_until_pending(job_id: str) -> None:
    """Wait until Slurm calls a job pending."""
    for _ in _tries():
        if command("squeue", "-h", "-o", "%T", "-j", job_id).strip() == "PENDING":
            return
    pytest.fail(f"Slurm's job {job_id} is not pending")


def wait_until_forgotten(job_id: str) -> None:
    """Wait until Slurm's controller no longer knows a job."""
    for _ in _tries():
        if not is_in_queue(job_id):
            return
    pytest.fail(f"Slurm still remembers job {job_id}")


def wait_until_cancelled(job_id: str) -> None:
    """Wait until the nodes have done away with a job; fail if it did not end by a cancellation."""
    for _ in _tries():
        state = command("squeue", "-h", "-t", "all", "-o", "%T", "-j", job_id).strip()
        if state not in _UNFINISHED:
            assert state == "CANCELLED"
            return
    pytest.fail(f"job {job_id} is {state}")


def exit_code_in_accounting(job_id: str) -> str:
    """Return a job's state and exit code in the accounting."""
    for _ in _tries():
        format_ = ("--format=State,ExitCode", "--parsable2", "--delimiter= ", "--noheader")
        found = command("sacct", "--allocations", *format_, f"--jobs={job_id}").strip()
        if found and found.split()[0] not in _UNFINISHED:
            return found
    return pytest.fail(f"the accounting has no end of job {job_id}")


def wait_until_drained(job: Job) -> None:
    """Wait until Slurm has no job with a job's tag, ghosts included."""
    for _ in _tries():
        # its tag is in the comment
        if job.id not in command("squeue", "-h", "--me", "-o", "%k"):
            return
    pytest.fail(f"jobs are left of {job.id}")


def unfinished() -> list[str]:
    """Return the ids of this user's unfinished jobs; one per heterogeneous job, not one per component."""
    listed = command("squeue", "-h", "--me", "-o", "%i").split()
    return sorted({job_id.partition("+")[0] for job_id in listed})


def path_without(program: str, directory: Path) -> str:
    """Return a PATH without one program; fill `directory` with links to all others."""
    directory.mkdir()
    for path in Path("/usr/bin").iterdir():
        if path.name != program:
            (directory / path.name).symlink_to(path)
    return os.fspath(directory)


def _tries() -> Iterator[None]:
    for _ in range(int(PATIENCE / _PAUSE)):
        yield
        time.sleep(_PAUSE)


_PAUSE = 0.2
_UNFINISHED = frozenset({"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED", "SUSPENDED"})
