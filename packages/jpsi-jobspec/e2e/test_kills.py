"""Processes that are killed at any instant: no task is lost or runs twice, and the outcome is right."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from flows import Flow

from conftest import TARGET
from jpsi_testing.waiting import eventually

pytestmark = pytest.mark.long

Log = Callable[[], list[str]]
# Seconds after the first output: half of them within the first second, in which most files are written.
INSTANTS = [number / 10 for number in range(10)] + [1 + number * 0.4 for number in range(10)]
#: Jobs, and one with several replicas, none of which ends before the last instant.
JOBS = """\
version: 1
resources: {{r: {{type: core, count: 1}}}}
attributes: {{cwd: {folder}}}
tasks:
- {{name: a, command: [sh, -c, 'echo a >>ran; sleep 2'], resources: r}}
- name: b
  replicas: 4
  resources: r
  depends_on: [a]
  command: [sh, -c, 'echo b$JPSI_REPLICA >>ran; sleep 2']
- {{name: c, command: [sh, -c, 'echo c >>ran; sleep 2'], resources: r, depends_on: [b]}}
- {{name: d, command: [sh, -c, 'echo d >>ran'], resources: r, depends_on: [a]}}
"""
#: Two tasks on each node, and then as many again.
WORK = """\
  - {name: work, replicas: 8, resources: one, command: [sh, -c, 'echo work$JPSI_REPLICA x >>ran; sleep 3']}
"""


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_killed_client_loses_and_repeats_no_task(instant: float, tmp_path: Path, log: Log) -> None:
    document = Flow(tmp_path, JOBS.format(folder=tmp_path))
    runs = tmp_path / "state/jpsi/workflows"

    with document.command("run", "-x", TARGET) as client:
        assert eventually(lambda: bool(list(runs.glob("*/1/run.json"))))
        # no wait for a condition: the kill must hit any step
        time.sleep(instant)
        assert client.poll() is None
        client.kill()
    with document.command("run", "-x", TARGET) as again:
        assert again.wait(300) == 0

    assert sorted(document.ran) == ["a", "b1", "b2", "b3", "b4", "c", "d"]
    assert document.ran[0] == "a"
    assert document.ran.index("c") > max(document.ran.index(f"b{it}") for it in range(1, 5))
    assert document.states() == {name: {("COMPLETED", None)} for name in "abcd"}


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_killed_group_run_is_restarted_and_continues(instant: float, tmp_path: Path, log: Log) -> None:
    document = Flow.of_group(tmp_path, WORK)
    runs = tmp_path / "state/jpsi/workflows"

    with document.command("run", "-x", TARGET) as client:
        assert eventually(lambda: any(it.stat().st_size for it in runs.glob("*/1/inside/g/journal")))
        # as in the test above
        time.sleep(instant)
        os.kill(document.runner, signal.SIGKILL)
        assert client.wait(300) == 0

    begin, *work, end = (it.split()[0] for it in document.ran)
    assert (begin, end) == ("begin", "end")
    assert sorted(work) == [f"work{it}" for it in range(1, 9)]
    assert document.states() == {name: {("COMPLETED", None)} for name in ("g", "begin", "work", "end")}
