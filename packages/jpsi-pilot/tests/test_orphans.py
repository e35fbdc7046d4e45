"""The orphaned processes of a lost node, which alone are ended."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jpsi import JobExecutor, JobSpec
from jpsi_pilot.client import process_name
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.node import supervision
from jpsi_pilot.node.node_log import NodeLog, read_node_log
from jpsi_pilot.node.sessions import end_session
from jpsi_pilot.node.supervision import end_orphans
from jpsi_pilot.protocol import Task
from jpsi_testing.conformance.base import Sign
from jpsi_testing.waiting import eventually
from pilot_support import is_alive, make_task, markers, write_job

_FAMILY = "sleep 1000 & echo $!; wait"


@pytest.fixture
def log(tmp_path: Path) -> NodeLog:
    return NodeLog(tmp_path / "nodes" / "node.1")


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[str]]:
    """Yield the leader of a session, which prints the pid of a child."""
    words = ["/bin/sh", "-c", _FAMILY]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as leader:
        yield leader
        leader.kill()


def child_of(leader: subprocess.Popen[str]) -> int:
    assert leader.stdout is not None
    return int(leader.stdout.readline())


def test_a_worker_and_its_runs_are_ended(log: NodeLog, leader: subprocess.Popen[str]) -> None:
    child = child_of(leader)
    with subprocess.Popen(["sleep", "1000"]) as worker:
        log.record_worker(worker.pid)
        log.record_begun("a-1", 0, leader.pid)

        end_orphans(log.path)

        assert worker.wait() < 0
    assert not is_alive(child)
    assert not is_alive(leader.pid)
    assert read_node_log(log.path).over


def test_processes_of_a_session_whose_leader_is_gone_are_ended(
    log: NodeLog, leader: subprocess.Popen[str]
) -> None:
    child = child_of(leader)
    log.record_begun("a-1", 0, leader.pid)
    leader.kill()
    leader.wait()

    end_orphans(log.path)

    assert not is_alive(child)


def test_a_run_whose_worker_was_killed_before_it_recorded_the_session_is_ended(
    log: NodeLog, tmp_path: Path
) -> None:
    marks = {"JPSI_PILOT_JOB": "a-1", "JPSI_PILOT_LOG": str(log.path)}
    environments = [
        marks,
        {**marks, "JPSI_PILOT_JOB": "a-2"},
        {**marks, "JPSI_PILOT_LOG": f"{tmp_path}/other"},
    ]
    with contextlib.ExitStack() as stack:
        processes = []
        for it in environments:
            process = stack.enter_context(subprocess.Popen(["sleep", "1000"], env={**os.environ, **it}))
            stack.callback(process.kill)
            processes.append(process)
        log.record_beginning("a-1", 0)

        end_orphans(log.path)

        assert processes[0].wait(60) < 0
        assert [it.poll() for it in processes[1:]] == [None, None]


def test_a_process_with_the_reused_pid_of_a_run_is_not_killed(
    log: NodeLog, leader: subprocess.Popen[str]
) -> None:
    child = child_of(leader)
    log.path.parent.mkdir()
    log.path.write_text(f"worker {leader.pid}.1\nbegun a-1 0 {leader.pid}.1\n")

    end_orphans(log.path)

    assert is_alive(child)
    assert leader.poll() is None
    subprocess.run(["kill", str(child)], check=True)


def test_a_process_with_the_reused_pid_of_a_program_gets_no_signal(leader: subprocess.Popen[str]) -> None:
    child = child_of(leader)

    end_session(leader.pid, 0, has_runner=False, start=1)

    assert leader.poll() is None
    end_session(leader.pid, 0, has_runner=False, start=int(process_name(leader.pid).partition(".")[2]))
    assert not is_alive(child)


_WORKER = """
import pickle, sys
from pathlib import Path
from jpsi_pilot.node.node_log import NodeLog
from jpsi_pilot.node.runs import Runs
Runs(Path(sys.argv[1]), NodeLog(Path(sys.argv[2]))).run(pickle.load(sys.stdin.buffer))
"""


def write_task(folder: Path, script: str, **fields: Any) -> Task:
    """Return a task whose program the node starts."""
    (folder / "environment").write_text(json.dumps({"PATH": "/usr/bin:/bin"}))
    config = PilotConfig(work_directory=folder / "work")
    with JobExecutor.get_instance("pilot", config=config) as executor:
        spec = JobSpec("/bin/sh", ["-c", script], directory=Path("/"), **fields)
        return make_task(write_job(executor, spec))


@contextlib.contextmanager
def working(folder: Path, log: NodeLog, task: Task) -> Iterator[subprocess.Popen[bytes]]:
    """Run a task in a worker."""
    words = [sys.executable, "-c", _WORKER, str(folder), str(log.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as worker:
        try:
            log.record_worker(worker.pid)
            assert worker.stdin is not None
            worker.stdin.write(pickle.dumps(task))
            worker.stdin.close()
            yield worker
        finally:
            worker.kill()


def starter_of(log: NodeLog) -> psutil.Process:
    assert eventually(lambda: read_node_log(log.path).starter != "")
    return psutil.Process(int(read_node_log(log.path).starter.partition(".")[0]))


@pytest.mark.parametrize("is_stuck", [False, True])
@pytest.mark.parametrize("trap", ["", "trap 'exit 0' TERM;"])
def test_no_end_is_left_of_a_program_that_the_clean_up_ends(
    log: NodeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str, is_stuck: bool
) -> None:
    sign, pid = Sign(tmp_path / "sign"), tmp_path / "pid"
    it = write_task(tmp_path, f"{trap} echo $$ >{pid}; echo >{sign.path}; while :; do sleep 0.05; done")
    with working(tmp_path, log, it):
        assert sign.wait(60)
        assert eventually(lambda: bool(read_node_log(log.path).sessions and markers(tmp_path)))
        starter = starter_of(log)
        if is_stuck:
            monkeypatch.setattr(supervision, "_STARTER_TIMEOUT", 0.1)
            starter.suspend()

        end_orphans(log.path)

    with contextlib.suppress(psutil.NoSuchProcess):
        starter.resume()
    assert eventually(lambda: not is_alive(starter.pid))
    assert not is_alive(int(pid.read_text()))
    assert markers(tmp_path) == {"active"}


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Task]:
    """Yield a task whose program is not executed until somebody reads its output."""
    it = write_task(tmp_path, f"echo >{tmp_path}/proof")
    (folder,) = (tmp_path / "work" / "pilot" / "jobs").iterdir()
    os.mkfifo(folder / "stdout")
    yield it
    # a program that waits for that goes on
    os.close(os.open(folder / "stdout", os.O_RDONLY | os.O_NONBLOCK))


def starting_of(starter: psutil.Process) -> int:
    assert eventually(lambda: bool(starter.children()))
    (child,) = starter.children()
    return int(child.pid)


def test_what_starts_programs_is_killed_before_they_are(
    log: NodeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: Task
) -> None:
    """It would take the end of a program for the program's own."""
    monkeypatch.setattr(supervision, "_STARTER_TIMEOUT", 0.1)
    seen = []

    def end_marked(*_: object) -> None:
        is_gone = eventually(lambda: not is_alive(starter.pid))
        seen.append("the program is left" if is_gone and is_alive(child) else "the starter is left")

    monkeypatch.setattr(supervision, "end_marked", end_marked)
    with working(tmp_path, log, stuck):
        starter = starter_of(log)
        child = starting_of(starter)

        end_orphans(log.path)

    os.kill(child, signal.SIGKILL)
    assert seen[0] == "the program is left"
    assert markers(tmp_path) == set()


def test_a_program_whose_start_waits_for_a_file_system_never_runs_after_its_node(
    log: NodeLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: Task
) -> None:
    monkeypatch.setattr(supervision, "_STARTER_TIMEOUT", 0.1)
    with working(tmp_path, log, stuck):
        starter = starter_of(log)
        child = starting_of(starter)

        end_orphans(log.path)

    assert not is_alive(starter.pid)
    assert not is_alive(child)
    assert markers(tmp_path) == set()
