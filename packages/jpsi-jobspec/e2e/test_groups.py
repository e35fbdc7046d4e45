"""Groups of two nodes on a real Slurm: where tasks run, and what becomes of them if something disturbs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import TARGET
from jpsi.testing.waiting import eventually

HEAD = """\
version: 1
resources:
  all: {{type: node, count: 2, with: [{{type: core, count: 2}}]}}
  one: {{type: core, count: 1}}
groups:
- name: {name}
  resources: all
  attributes: {{duration: {duration}, cwd: {cwd}}}
  tasks:
  - {{name: begin, local: true, command: [sh, -c, 'echo begin $(hostname) >>ran']}}
"""
END = "  - {name: end, local: true, command: [sh, -c, 'echo end $(hostname) >>ran']}\n"
#: Two on each node, the second of each once it is allowed to.
WORK = """\
  - name: work
    replicas: 4
    resources: one
    command: [sh, -c, 'echo work $(hostname) >>ran; until [ -e go ]; do sleep 0.2; done; exit $(cat go)']
"""

Log = Callable[[], list[str]]


class Flow:
    """A document in a directory, and what its tasks have written."""

    def __init__(self, folder: Path, text: str, name: str = "g", duration: str = "20m") -> None:
        self.folder = folder
        head = HEAD.format(name=name, duration=duration, cwd=folder)
        (folder / "flow.yaml").write_text(f"{head}{text}{END}")
        (folder / "ran").touch()

    @property
    def ran(self) -> list[str]:
        return (self.folder / "ran").read_text().splitlines()

    def command(self, name: str, *options: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "jpsi_cli", "workflow", name, *options, "flow.yaml"]
        return subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True)

    @contextlib.contextmanager
    def run(self) -> Iterator[subprocess.Popen[str]]:
        """Run it, in the context once its tasks are at work on both nodes."""
        with self.command("run", "-x", TARGET) as process:
            try:
                assert eventually(lambda: len(self.ran) > 4)
                yield process
            except BaseException:
                # nobody waits for what goes on
                process.terminate()
                (self.folder / "go").write_text("1")
                raise

    @property
    def runner(self) -> int:
        """The process that runs the inside of the group."""
        words = {b"jpsi_jobspec.group_run", b"g"}
        for it in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = it.read_bytes()
                if words <= set(line.split(b"\0")) and os.fsencode(self.folder) in line:
                    return int(it.parent.name)
        raise LookupError

    def told(self) -> dict[str, set[tuple[str, str | None]]]:
        """The states and reasons of what is inside, by name."""
        with self.command("status", "--json") as process:
            records: list[dict[str, Any]] = json.loads(process.communicate()[0])
        found: dict[str, set[tuple[str, str | None]]] = {}
        for it in records:
            found.setdefault(it["id"].rpartition("/")[2], set()).add((it["state"], it["reason"]))
        return found


@pytest.fixture
def flow(tmp_path: Path, log: Log) -> Callable[..., Flow]:
    return lambda text, **more: Flow(tmp_path, text, **more)


def test_tasks_run_on_both_nodes_with_what_is_local_on_the_first(flow: Callable[..., Flow]) -> None:
    document = flow(WORK)

    with document.run() as process:
        (document.folder / "go").write_text("3")
        assert process.wait(120) == 3

    begin, *work, end = document.ran
    assert (begin, end) == ("begin node01", "end node01")
    assert sorted(work) == ["work node01"] * 2 + ["work node02"] * 2
    assert document.told() == {
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
    assert document.told()["work"] == {("CANCELED", "cancelled")}
    assert document.told()["g"] == {("CANCELED", "cancelled")}


def test_a_group_cleans_up_before_its_time_is_up(flow: Callable[..., Flow]) -> None:
    document = flow(WORK, duration="1m")

    with document.run() as process:
        assert process.wait(180) == 124

    assert document.ran[-1] == "end node01"
    assert document.told()["work"] == {("CANCELED", "timeout")}


def test_a_group_whose_client_is_gone_and_whose_runner_is_killed_goes_on(
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


def test_a_group_that_is_put_back_into_the_queue_runs_again_what_it_has_not_done(
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
    assert {name: states for name, states in document.told().items() if name != "again"} == {
        name: {("COMPLETED", None)} for name in ("begin", "done", "work", "end")
    }
