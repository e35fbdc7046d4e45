"""The orphaned processes of a lost node, which alone are ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_pilot.node.node_log import NodeLog, read_node_log
from jpsi_pilot.node.supervision import end_orphans
from pilot_support import is_alive

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
