"""What tests do with agents: ask them, and have them leave."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus
from jpsi_pilot import client
from jpsi_pilot.client import LOCK
from jpsi_pilot.protocol import Need
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually

# Seconds until what was cancelled must have ended.
_CANCEL_TIMEOUT = 60
#: Seconds until a job must run, or have ended, whatever else this machine does.
PATIENCE = 240.0


def send_request(folder: Path, what: str, **values: object) -> dict[str, Any]:
    """What an agent answers; one is started if there is none."""
    done = subprocess.run(
        [sys.executable, client.__file__, str(folder.parent)],
        input=json.dumps({"do": what, **values}) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def agent_pid(folder: Path) -> int:
    """The process of an agent that is there."""
    return int((folder / LOCK).read_text().split()[0])


def end_agent(folder: Path) -> None:
    """Cancel what an agent has, if it is there, and have it and its pilots go."""
    if not is_agent_running(folder):
        return

    def is_idle() -> bool:
        unfinished = list(send_request(folder, "query", ids=None)["jobs"])
        if unfinished:
            send_request(folder, "cancel", ids=unfinished)
        return not unfinished

    eventually(is_idle, _CANCEL_TIMEOUT)
    with contextlib.suppress(ProcessLookupError):
        os.kill(agent_pid(folder), signal.SIGTERM)
    with (folder / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)


def is_agent_running(folder: Path) -> bool:
    """Whether an agent holds its lock."""
    if not (folder / LOCK).exists():
        return False
    with (folder / LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def running(executor: JobExecutor, spec: JobSpec) -> Job:
    """A job that runs."""
    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE), job
    return job


def end(job: Job) -> JobStatus:
    """The final status of a job."""
    status = job.wait(PATIENCE)
    assert status is not None, job
    return status


def proving(proof: Proof, gate: Gate, **custom: Any) -> JobSpec:
    """A job that leaves a line as it begins, and then waits."""
    attributes = JobAttributes(custom_attributes=custom or None, duration=timedelta(minutes=5))
    return shell(f"{Proof.WRITE}; shift; {Gate.WAIT}; exit 3", proof.path, gate.path, attributes=attributes)


def wait_for_node(executor: JobExecutor, job: Job) -> str:
    """Where a job runs, once it does; what the agent says of it may be older than what it says itself."""
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
    """The processes of the agent's pilots that run a module of this package."""
    found = []
    for it in psutil.Process(agent_pid(folder)).children(recursive=True):
        # one that has ended meanwhile is none of them
        with contextlib.suppress(psutil.NoSuchProcess):
            # python -c PROGRAM FOLDER MODULE ...
            if it.cmdline()[4:5] == [module]:
                found.append(it)
    return found


def is_alive(pid: int) -> bool:
    """Whether a process has not ended, be it that nobody has collected it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def submitted(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A submission as the journal has it."""
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
