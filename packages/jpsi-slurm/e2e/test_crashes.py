"""A client that is killed at any instant: another process finds every job, and each has run once."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOBS = 50

# Submits jobs, or finds them again. Each job proves that it ran and has its own exit code.
CLIENT = r"""
import sys
from pathlib import Path

import jpsi
from jpsi_slurm import SlurmConfig

root, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
executor = jpsi.JobExecutor.get_instance("slurm", config=SlurmConfig(work_directory=root / "work"))
text = 'echo "$1" >>"$2"; sleep "0.$(($1 % 10))"; exit "$1"'
if what == "submit":
    jobs = []
    for number in range(count):
        spec = jpsi.JobSpec("/bin/sh", ["-c", text, "sh", str(number), f"{root}/proof"], name=f"n{number}")
        jobs.append(jpsi.Job(spec))
        executor.submit(jobs[-1])
    print("submitted", flush=True)
else:
    jobs = executor.recover()
    for job in jobs:
        if job.status.state is jpsi.JobState.NEW:
            executor.submit(job)
for job in jobs:
    status = job.wait(300)
    print(job.spec.name[1:], None if status is None else status.exit_code, flush=True)
"""


def test_killed_client_loses_no_job_and_runs_none_twice(tmp_path: Path, is_long: bool) -> None:
    instants = random.Random(20261121)
    rounds = []
    for round_ in range(30 if is_long else 4):
        root = tmp_path / str(round_)
        root.mkdir()
        instant = instants.uniform(0.15, 1.6)
        rounds.append(_crash(root, instant))

    assert [line for line in rounds if "!" in line] == []


def _crash(root: Path, instant: float) -> str:
    """Kill the client once and return the result, with an exclamation mark if something is wrong."""
    command = [sys.executable, "-c", CLIENT, str(root)]
    client = subprocess.Popen([*command, "submit", str(JOBS)], stdout=subprocess.PIPE, text=True)
    time.sleep(instant)
    client.send_signal(signal.SIGKILL)
    seen, _ = client.communicate()
    found = subprocess.run(
        [*command, "recover", "0"], capture_output=True, text=True, check=False, timeout=400
    )
    if found.returncode != 0:
        pytest.fail(found.stderr)
    codes = dict(line.split() for line in (seen + found.stdout).splitlines() if line[:1].isdigit())
    jobs = _jobs(root / "work" / "slurm" / "jobs")
    # the spool has the exit codes of jobs that ended before the client was killed
    codes = {**{number: code for number, code in jobs.items() if code is not None}, **codes}
    wrong = {number: code for number, code in codes.items() if number != code}
    proof = root / "proof"
    ran = proof.read_text().split() if proof.exists() else []
    twice = {number for number in ran if ran.count(number) > 1}
    lost = jobs.keys() - codes.keys() | jobs.keys() ^ set(ran)
    mark = "!" if wrong or twice or lost else ""
    return f"killed after {instant:.2f} s: {len(jobs)} jobs, wrong {wrong}, twice {twice}, lost {lost} {mark}"


def _jobs(folders: Path) -> dict[str, str | None]:
    """Return the numbers of all jobs with an intent on disk, and the exit codes of those that ended."""
    jobs: dict[str, str | None] = {}
    for folder in folders.iterdir() if folders.exists() else ():
        if any(folder.glob("run.*")):
            intent = json.loads(next(folder.glob("intent.*")).read_text().splitlines()[0])
            ends = [path.name.rpartition(".")[2] for path in folder.glob("*.exit.*")]
            jobs[intent["spec"]["name"][1:]] = ends[0] if ends else None
    return jobs
