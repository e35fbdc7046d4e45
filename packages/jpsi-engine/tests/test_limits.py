"""Scarce descriptors, and applications that handle their children themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import jpsi, sys
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
jobs = [jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", f"exit {n % 5}"])) for n in range(int(sys.argv[2]))]
for job in jobs:
    executor.submit(job)
for n, job in enumerate(jobs):
    status = job.wait(60)
    assert status is not None and status.exit_code == n % 5, (n, job, status)
    assert status.evidence is jpsi.Evidence.MARKER, status
print("all well")
"""

IGNORES = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
"""

COLLECTS = """
import os, threading, time
def collect():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.001)
threading.Thread(target=collect, daemon=True).start()
"""

HANDLES = """
import os, signal
def collect(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
signal.signal(signal.SIGCHLD, collect)
"""

NO_PIDFD = """
import os
del os.pidfd_open
"""

NO_INOTIFY = """
import jpsi_engine.local.exits
def refuse(directory):
    raise OSError(24, "no inotify instances left")
jpsi_engine.local.exits.MarkerWatch = refuse
"""


def check(program: str, work: Path, count: int, prefix: str = "") -> None:
    command = [sys.executable, "-c", program, str(work), str(count)]
    if prefix:
        command = ["/bin/sh", "-c", f'{prefix}; exec "$@"', "sh", *command]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert (result.returncode, result.stdout) == (0, "all well\n"), result.stderr


def test_a_thousand_jobs_end_well_with_few_descriptors(tmp_path: Path) -> None:
    check(RUN, tmp_path, 1000, "ulimit -n 256")


SLEEPERS = """
import jpsi, os, sys
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
reader, writer = f"{sys.argv[1]}/r", None
os.mkfifo(reader)
long = [jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", f"read x < '{reader}'"])) for _ in range(60)]
short = [jpsi.Job(jpsi.JobSpec("/bin/true")) for _ in range(60)]
for job in long + short:
    executor.submit(job)
assert all(job.wait(60) for job in short), "short jobs behind long ones must not wait for them"
assert not any(job.status.final for job in long)
fd = os.open(reader, os.O_RDWR)
os.write(fd, b"\\n" * 200)
assert all(job.wait(60) for job in long)
print("all well")
"""


def test_ends_of_jobs_are_published_while_others_hold_all_descriptors(tmp_path: Path) -> None:
    check(SLEEPERS, tmp_path, 0, "ulimit -n 64")


@pytest.mark.parametrize(
    "habit",
    [IGNORES, COLLECTS, HANDLES, NO_PIDFD, NO_PIDFD + NO_INOTIFY],
    ids=["ignores-sigchld", "waits-for-any", "handles-sigchld", "no-pidfd", "no-pidfd-no-inotify"],
)
def test_no_habit_of_the_application_costs_a_status(tmp_path: Path, habit: str) -> None:
    check(habit + RUN, tmp_path, 50)


def test_few_descriptors_and_no_inotify(tmp_path: Path) -> None:
    check(NO_INOTIFY + SLEEPERS, tmp_path, 0, "ulimit -n 64")


FORKS = """
import jpsi, os, sys
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
job = jpsi.Job(jpsi.JobSpec("/bin/true"))
job.set_job_status_callback(lambda *_: None)
executor.submit(job)
assert job.wait(60)
child = os.fork()
job = jpsi.Job(jpsi.JobSpec("/bin/true"))
job.set_job_status_callback(lambda *_: None)
executor.submit(job)
assert job.wait(60)
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("all well")
"""


def test_a_forked_child_can_run_its_own_jobs(tmp_path: Path) -> None:
    check(FORKS, tmp_path, 0)


ABANDONS = """
import gc, jpsi, sys, weakref
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
job = jpsi.Job(jpsi.JobSpec("/bin/true"))
executor.submit(job)
assert job.wait(60)
ghost = weakref.ref(executor)
del executor, job
for _ in range(100):
    gc.collect()
    if ghost() is None:
        break
assert ghost() is None, gc.get_referrers(ghost())
print("all well")
"""


def test_an_abandoned_executor_is_collected(tmp_path: Path) -> None:
    check(ABANDONS, tmp_path, 0)
