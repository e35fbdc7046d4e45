"""What the tests on a real Slurm share: jobs, and what Slurm itself says of them."""

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

#: Seconds that anything may take, however busy the machine is.
PATIENCE = 240.0

#: Shell that proves that it runs and goes on for ever: one dies when it is told to end, one ends with 0, as
#: programs do that save their state, and one does not care. The second takes a moment for that: Slurm signals
#: the processes of a job one after the other, and one that returns 0 before its runner gets the signal has
#: completed (docs/decisions/0019).
PLAIN = f"{Proof.WRITE}; exec sleep 1000"
OBEDIENT = f"trap 'trap \"\" TERM; sleep 0.5; exit 0' TERM; {Proof.WRITE}; while :; do sleep 0.1; done"
STUBBORN = f'trap "" TERM; {Proof.WRITE}; while :; do sleep 0.1; done'

#: Asks the daemon of ci/slurm/control, which runs as root, for one of its verbs.
Control = Callable[[str], None]


def proving(path: Path, code: int, seconds: float = 0.0) -> Job:
    """A job that leaves a line in a file, and ends with this code after a while."""
    return Job(shell(f"{Proof.WRITE}; sleep {seconds}; exit {code}", path))


def running(executor: JobExecutor, text: str, proof: Path, **fields: Any) -> Job:
    """A job that runs one of the pieces of shell above, and has begun to."""
    job = Job(shell(text, proof, **fields))
    executor.submit(job)
    ran(proof)
    return job


def ran(proof: Path, times: int = 1) -> None:
    """Wait until a job has proved so often that it ran."""
    for _ in _tries():
        if Proof(proof).runs >= times:
            return
    pytest.fail(f"{proof} is not there {times} times")


def end(job: Job) -> JobStatus:
    """The final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status


def run(executor: JobExecutor, spec: JobSpec) -> JobStatus:
    """The final status of a job that is submitted now."""
    job = Job(spec)
    executor.submit(job)
    return end(job)


# Submits a job and ends at once, like a client that is killed.
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


def submitted_elsewhere(work_directory: Path, text: str, *arguments: object) -> str:
    """The native id of a piece of shell that another process has submitted, which is no more."""
    words = [sys.executable, "-c", _CLIENT, str(work_directory), text, *map(str, arguments)]
    return command(*words).strip()


def attached(executor: JobExecutor, native_id: str) -> Job:
    """A job that stands for one of Slurm's."""
    job = Job()
    executor.attach(job, native_id)
    return job


def custom(**options: object) -> JobAttributes:
    """Attributes with these options of sbatch, whose dashes are written as underscores."""
    return JobAttributes(
        custom_attributes={f"slurm.{name.replace('_', '-')}": value for name, value in options.items()}
    )


def native_id(job: Job) -> str:
    """The native id of a job that was submitted."""
    assert job.native_id is not None
    return job.native_id


def command(*words: str) -> str:
    """What a command of Slurm's prints; one that fails fails the test."""
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
    """The state and the exit code, such as `FAILED 7:0`, that Slurm's controller has of a job's end."""
    for _ in _tries():
        words = command("scontrol", "--oneliner", "show", "job", job_id).split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if fields["JobState"] not in _UNFINISHED:
            return f"{fields['JobState']} {fields['ExitCode']}"
    return pytest.fail(f"Slurm's job {job_id} has not ended")


def is_in_queue(job_id: str) -> bool:
    """Whether Slurm's controller remembers a job."""
    asked = subprocess.run(
        ["squeue", "-h", "-t", "all", "-j", job_id], capture_output=True, text=True, check=False
    )
    return bool(asked.stdout.strip())


def pending(job_id: str) -> None:
    """Wait until Slurm calls a job pending."""
    for _ in _tries():
        if command("squeue", "-h", "-o", "%T", "-j", job_id).strip() == "PENDING":
            return
    pytest.fail(f"Slurm's job {job_id} is not pending")


def forgotten(job_id: str) -> None:
    """Wait until Slurm's controller remembers a job no more."""
    for _ in _tries():
        if not is_in_queue(job_id):
            return
    pytest.fail(f"Slurm still remembers job {job_id}")


def exit_code_in_accounting(job_id: str) -> str:
    """The state and the exit code that sacct has of a job's end."""
    for _ in _tries():
        format_ = ("--format=State,ExitCode", "--parsable2", "--delimiter= ", "--noheader")
        found = command("sacct", "--allocations", *format_, f"--jobs={job_id}").strip()
        if found and found.split()[0] not in _UNFINISHED:
            return found
    return pytest.fail(f"the accounting has no end of job {job_id}")


def drained(job: Job) -> None:
    """Wait until none of Slurm's jobs is left that a job of jpsi's was submitted as, ghosts included."""
    for _ in _tries():
        # its tag is in the comment
        if job.id not in command("squeue", "-h", "--me", "-o", "%k"):
            return
    pytest.fail(f"jobs are left of {job.id}")


def unfinished() -> list[str]:
    """The ids of this user's jobs that have not ended; one for a heterogeneous job, not one a component."""
    shown = command("squeue", "-h", "--me", "-o", "%i").split()
    return sorted({job_id.partition("+")[0] for job_id in shown})


def path_without(program: str, directory: Path) -> str:
    """A PATH on which one program is missing; `directory` is made, and filled with all others."""
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
