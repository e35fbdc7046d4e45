"""A group whose processes are killed at any instant: it continues, and its outcome is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import begin_run
from jpsi import JobExecutor
from jpsi_jobspec.groups import lifetime
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store.journal import Journal
from jpsi_testing.waiting import eventually

# The instants of a kill, in hundredths of a second after the first output.
INSTANTS = [0, 4, 10, 20, 40]
GROUP = """\
version: 1
resources: {g: {type: core, replicas: 2}, r: {type: core, count: 1}}
groups:
- name: g
  resources: g
  tasks:
  - {name: a, local: true, command: [sh, -c, 'echo a >>"$LOG"']}
  - {name: b, command: [sh, -c, 'echo b$JPSI_REPLICA >>"$LOG"'], resources: r, replicas: 4}
  - {name: c, local: true, command: [sh, -c, 'echo c >>"$LOG"']}
"""
#: A group whose first task ends only after a file appears.
LONG = GROUP.replace("'echo b$", '\'echo begun$JPSI_REPLICA >>"$LOG"; test -e go || sleep 600; echo b$')
ONCE = ["a", "b1", "b2", "b3", "b4", "c"]

Begin = Callable[[str], "Run"]


class Run:
    """A group, the job of its allocation, and the output of its tasks."""

    def __init__(self, journal: Journal, log: Path) -> None:
        self.journal = journal
        self._log = log

    @property
    def inside(self) -> Journal:
        (allocation,) = self.journal.plan.entries
        return journals.inner_journal(self.journal.path, allocation)

    @property
    def log(self) -> list[str]:
        return self._log.read_text().split()

    @property
    def errors(self) -> str:
        return self._log.with_name("errors").read_text()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the job of the allocation, in a session of its own."""
        command = [sys.executable, "-m", "jpsi_jobspec.group_supervisor", str(self.journal.path), "g"]
        with self._log.with_name("errors").open("ab") as errors:
            return subprocess.Popen(command, stdout=errors, stderr=errors, start_new_session=True)

    def started(self) -> subprocess.Popen[bytes]:
        """Start the job and wait until its first output."""
        job = self.start()
        journal = self.journal.path / "inside/g/journal"
        assert eventually(lambda: journal.exists() and bool(journal.stat().st_size))
        return job


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    (tmp_path / "log").touch()
    return lambda text: Run(begin_run(text, "local", tmp_path), tmp_path / "log")


def runner_of(job: subprocess.Popen[bytes]) -> int | None:
    """Return the process that runs the inside; None if it has ended."""
    try:
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_requeued_allocation_continues_where_it_was(instant: int, begin: Begin) -> None:
    """A batch system requeues it after a node is lost; ended tasks do not run again."""
    run = begin(GROUP)

    with run.started() as job:
        # no wait for a condition: the kill must hit any step
        time.sleep(instant / 100)
        os.killpg(job.pid, signal.SIGKILL)
    with run.start() as again:
        again.wait(120)

    assert again.returncode == 0, run.errors
    assert (run.log[0], sorted(run.log), run.log[-1]) == ("a", ONCE, "c")


@pytest.mark.parametrize("instant", INSTANTS)
def test_the_process_that_runs_the_inside_is_restarted_if_it_is_killed(instant: int, begin: Begin) -> None:
    run = begin(GROUP)

    with run.started() as job:
        time.sleep(instant / 100)
        runner = runner_of(job)
        if runner is not None:
            os.kill(runner, signal.SIGKILL)
        job.wait(120)

    assert job.returncode == 0, run.errors
    assert (run.log[0], sorted(run.log), run.log[-1]) == ("a", ONCE, "c")


def test_tasks_that_ended_with_an_allocation_run_again_in_the_next_one(begin: Begin) -> None:
    """A batch system ends the allocation with its job, and gives the nodes to others."""
    run = begin(LONG)
    home = Path(os.environ["HOME"])

    with run.started() as job:
        assert eventually(lambda: "begun2" in run.log)
        job.kill()
    assert eventually(lambda: run.inside.is_over)
    first = {name: [it.reason for it in parts] for name, parts in run.inside.parts.items()}
    assert run.log[-1] == "c"
    (home / "go").touch()
    with run.start() as again:
        again.wait(120)

    assert first == {"g/a": [None], "g/b": ["interrupted"] * 4, "g/c": [None]}
    assert again.returncode == 0, run.errors
    ran = [it for it in run.log if not it.startswith("begun")]
    assert (ran[:3], sorted(ran[3:-1]), ran[-1]) == (["a", "c", "a"], ONCE[1:-1], "c")


def test_the_driver_of_a_run_ends_orphans_of_a_group_on_this_machine_and_cleans_up(
    begin: Begin,
) -> None:
    """The whole job was killed. On the nodes of a batch system, that system ends remaining processes."""
    run = begin(LONG)
    with run.started() as job:
        assert eventually(lambda: "begun2" in run.log)
        os.killpg(job.pid, signal.SIGKILL)
    with JobExecutor("local") as executor:
        lifetime.end_orphans(run.journal, executor)
        assert not run.inside.is_over

        run.journal.append([{"entry": "g", "replica": 1, "state": "FAILED", "exit_code": 137}])
        lifetime.end_orphans(run.journal, executor)

    assert [it.reason for it in run.inside.parts["g/b"]] == ["interrupted"] * 4
    assert run.log[-1] == "c"


def test_tasks_without_a_known_end_in_an_ended_group_are_reported_as_lost(begin: Begin) -> None:
    run = begin(LONG)
    inside = run.inside
    inside.append([{"entry": "g/b", "replica": 1, "job": "x", "is_submitted": True}])

    lifetime.mark_lost(inside)

    assert [it.state.value for it in inside.parts["g/b"]] == ["FAILED", "CANCELED", "CANCELED", "CANCELED"]
    assert inside.parts["g/b"][0].reason == "lost"
