"""Support for tests with agents: requests to them, and their shutdown."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus
from jpsi.plugin.engine import serialization
from jpsi_pilot import client
from jpsi_pilot.client import LOCK
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.protocol import Need, Task
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually

# Seconds until cancelled jobs must have ended.
_CANCEL_TIMEOUT = 60
#: Seconds until a job must run, or have ended, whatever else this machine does.
PATIENCE = 240.0


def send_request(folder: Path, what: str, **values: object) -> dict[str, Any]:
    """Return the agent's response to a request; start an agent if none runs."""
    done = subprocess.run(
        [sys.executable, client.__file__, str(folder.parent)],
        input=json.dumps({"do": what, **values}) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    response: dict[str, Any] = json.loads(done.stdout)
    return response


def agent_pid(folder: Path) -> int:
    """Return the pid of the running agent."""
    return int((folder / LOCK).read_text().split()[0])


@contextlib.contextmanager
def shared_agent(folder: Path) -> Iterator[Path]:
    """Yield the directory of an agent that serves one test after the other, as a batch system does.

    Nothing of it is in the home of a test, which ends before it does.
    """
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in ("STATE", "CONFIG", "CACHE"):
            monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        (folder / "pilots").mkdir(mode=0o700)
        send_request(folder / "pilots", "query", ids=None)
    yield folder / "pilots"
    end_agent(folder / "pilots")


@contextlib.contextmanager
def sharing_config(agent: Path, work_directory: Path, engine: str | None = None) -> Iterator[PilotConfig]:
    """Yield a configuration whose jobs go to an agent that runs already, and cancel them after it."""
    work_directory.mkdir(mode=0o700)
    (work_directory / "pilots").symlink_to(agent)
    yield PilotConfig(
        work_directory=work_directory,
        engine=engine,
        cores_per_node=8,
        idle_time=timedelta(seconds=30),
        kill_delay=timedelta(seconds=0.5),
        shortest_interval=timedelta(seconds=0.1),
        longest_interval=timedelta(seconds=0.3),
        grace=timedelta(seconds=1),
    )
    cancel_jobs(agent)


def cancel_jobs(folder: Path) -> None:
    """Cancel all jobs of an agent, and wait for their ends."""

    def is_idle() -> bool:
        unfinished = list(send_request(folder, "query", ids=None)["jobs"])
        if unfinished:
            send_request(folder, "cancel", ids=unfinished)
        return not unfinished

    assert eventually(is_idle, _CANCEL_TIMEOUT)


def end_agent(folder: Path) -> None:
    """Cancel all jobs of an agent, if it runs, and end it and its pilots."""
    if not is_agent_running(folder):
        return
    cancel_jobs(folder)
    with contextlib.suppress(ProcessLookupError):
        os.kill(agent_pid(folder), signal.SIGTERM)
    with (folder / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def is_agent_running(folder: Path) -> bool:
    """Return True if an agent holds its lock."""
    if not (folder / LOCK).exists():
        return False
    with (folder / LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def running_job(executor: JobExecutor, spec: JobSpec) -> Job:
    """Submit a job and return it once it runs."""
    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE), job
    return job


def final_status(job: Job) -> JobStatus:
    """Return the final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status


def spec_with_proof(proof: Proof, gate: Gate, **custom: Any) -> JobSpec:
    """Return the spec of a job that writes a line as it begins, and then waits."""
    attributes = JobAttributes(custom_attributes=custom or None, duration=timedelta(minutes=5))
    return shell(f"{Proof.WRITE}; shift; {Gate.WAIT}; exit 3", proof.path, gate.path, attributes=attributes)


def wait_for_node(executor: JobExecutor, job: Job) -> str:
    """Return the node of a job once it runs; the agent's status may lag behind the job's."""
    node = ""

    def is_node_known() -> bool:
        nonlocal node
        info = executor.info(job)
        node = "" if info is None else info.details.get("pilot.place", "")
        return bool(node)

    assert job.wait(PATIENCE, target_states=JobState.ACTIVE), job
    assert eventually(is_node_known), job
    return node


def processes(folder: Path, module: str) -> list[psutil.Process]:
    """Return the processes of the agent's pilots that run a module of this package."""
    found = []
    for it in psutil.Process(agent_pid(folder)).children(recursive=True):
        # a process may have ended meanwhile
        with contextlib.suppress(psutil.NoSuchProcess):
            # python -c PROGRAM FOLDER MODULE ...
            # a child that has not executed its own program yet has the same command line
            if it.cmdline()[4:5] == [module] and it.ppid() not in {parent.pid for parent in found}:
                found.append(it)
    return found


def is_alive(pid: int) -> bool:
    """Return True if a process has not ended; a zombie has."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def submission_event(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a submission in the form of the journal."""
    values = {
        "tag": f"tag-{number}",
        "script": "true",
        "environment": "environments/x",
        "umask": 0o022,
        "settings": "s",
        "need": Need(seconds=60).to_dict(),
        "client": "7.1",
        "retry": False,
        "elements": None,
        "at_a_time": None,
    }
    return {"what": "submitted", "number": number, "time": 1.0, **values, **changes}


def write_job(executor: JobExecutor, spec: JobSpec) -> str:
    """Write the files of a job as a submission would, and return its script."""
    job = Job(spec)
    preview = executor.preview(job)
    content = {"id": job.id, "attempt": 1, "directory": "/", "spec": serialization.encode(spec)}
    preview.path.parent.mkdir(parents=True)
    (preview.path.parents[2] / "events").mkdir(exist_ok=True)
    preview.path.write_text(preview.run)
    preview.path.with_name("intent.1.json").write_text(f"{json.dumps(content)}\n")
    assert preview.script is not None
    return preview.script


def make_task(
    script: str, native_id: str = "a-1", seconds: int = 60, delay: float = 0.2, gpus: int | None = None
) -> Task:
    return Task(
        native_id=native_id,
        restarts=0,
        script=script,
        environment="environment",
        umask=0o027,
        variables={"JPSI_PILOT_JOB": native_id},
        seconds=seconds,
        kill_delay=delay,
        gpus=gpus,
    )


def markers(folder: Path) -> set[str]:
    """Return the markers of jobs, without their ids and the CPU time that they used."""
    events = folder / "work" / "pilot" / "events"
    return {re.sub(r"-\d+", "", it.name.partition(".1.")[2]) for it in events.iterdir()}
