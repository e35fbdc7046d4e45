"""The orphaned processes of a lost node, which alone are ended."""

from __future__ import annotations

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
