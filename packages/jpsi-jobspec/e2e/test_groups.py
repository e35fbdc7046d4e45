"""Groups of two nodes on a real Slurm: the nodes of their tasks, and their behaviour when disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from flows import Flow

from jpsi_testing.waiting import eventually

#: Two tasks on each node, the second of each after a file appears.
WORK = """\
  - name: work
    replicas: 4
    resources: one
    command: [sh, -c, 'echo work $(hostname) >>ran; until [ -e go ]; do sleep 0.2; done; exit $(cat go)']
"""

Log = Callable[[], list[str]]


@pytest.fixture
def flow(tmp_path: Path, log: Log) -> Callable[..., Flow]:
    return lambda tasks, **more: Flow.of_group(tmp_path, tasks, **more)


def test_tasks_run_on_both_nodes_and_local_ones_on_the_first(flow: Callable[..., Flow]) -> None:
    document = flow(WORK)

    with document.run() as process:
        (document.folder / "go").write_text("3")
        assert process.wait(120) == 3

    begin, *work, end = document.ran
    assert (begin, end) == ("begin node01", "end node01")
    assert sorted(work) == ["work node01"] * 2 + ["work node02"] * 2
    assert document.states() == {
        "g": {("FAILED", "exit_code")},
        "begin": {("COMPLETED", None)},
        "work": {("FAILED", "exit_code")},
        "end": {("COMPLETED", None)},
    }


def test_a_group_that_is_cancelled_is_ended_on_both_nodes_and_cleaned_up(flow: Callable[..., Flow]) -> None:
    document = flow(WORK)

    with document.run() as process:
        with document.command("cancel") as cancelling:
            assert cancelling.wait(120) == 0
        assert process.wait(120) == 130

    assert document.ran[-1] == "end node01"
    assert document.states()["work"] == {("CANCELED", "cancelled")}
    assert document.states()["g"] == {("CANCELED", "cancelled")}


def test_a_task_of_a_group_is_cancelled_by_its_name_and_the_others_run_on(flow: Callable[..., Flow]) -> None:
    tasks = "  - {name: long, resources: one, command: [sh, -c, 'echo long x >>ran; sleep 600']}\n"
    document = flow(f"{tasks}{WORK.replace('replicas: 4', 'replicas: 3')}")

    with document.run() as process:
        with document.command("cancel", names=["g/long"]) as cancelling:
            assert cancelling.wait(120) == 0
        assert document.states()["long"] == {("CANCELED", "cancelled")}
        assert process.poll() is None
        (document.folder / "go").write_text("0")
        assert process.wait(120) == 130

    assert document.ran[-1] == "end node01"
    assert document.states()["work"] == {("COMPLETED", None)}
    assert document.states()["g"] == {("CANCELED", "cancelled")}


def test_a_group_cleans_up_before_its_time_is_up(flow: Callable[..., Flow]) -> None:
    document = flow(WORK, duration="1m")

    with document.run() as process:
        assert process.wait(180) == 124

    assert document.ran[-1] == "end node01"
    assert document.states()["work"] == {("CANCELED", "timeout")}


def test_a_group_continues_without_its_client_after_its_runner_is_killed(
    flow: Callable[..., Flow],
) -> None:
    document = flow(WORK)
    with document.run() as process:
        process.kill()

    os.kill(document.runner, signal.SIGKILL)
    (document.folder / "go").write_text("0")
    with document.command("wait") as waiting:
        assert waiting.wait(180) == 0

    assert sorted(document.ran) == sorted(["begin node01", "end node01"] + ["work node01", "work node02"] * 2)


def test_a_requeued_group_runs_its_unfinished_tasks_again(
    flow: Callable[..., Flow],
) -> None:
    done = "  - {name: done, command: [sh, -c, echo done x >>ran], resources: one}\n"
    # other tests have groups in the queue as well
    document = flow(f"{done}{WORK}    depends_on: [done]\n", name="again")

    with document.run() as process:
        assert eventually(lambda: len(document.ran) == 6)
        queue = ["squeue", "-h", "-o", "%i", "-n", "again"]
        (job,) = subprocess.run(queue, capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(["scontrol", "requeue", job], check=True)
        (document.folder / "go").write_text("0")
        assert process.wait(300) == 0

    assert document.ran.count("done x") == 1
    assert document.ran[-1] == "end node01"
    assert {name: states for name, states in document.states().items() if name != "again"} == {
        name: {("COMPLETED", None)} for name in ("begin", "done", "work", "end")
    }
