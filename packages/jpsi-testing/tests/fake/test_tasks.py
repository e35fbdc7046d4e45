"""Commands of a fake batch system that start processes: what these have, and how they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    CommandFunction,
    FakeClock,
    FakeScheduler,
    Invocation,
    Task,
    TaskLaunch,
    answer,
    on_path,
    task_runner,
)
from jpsi_testing.waiting import eventually


class Starter:
    """A fake whose one command starts its arguments so often, each with its rank."""

    def __init__(self, count: int = 3, **options: Any) -> None:
        self.count, self.options = count, options
        self.commands: Mapping[str, CommandFunction] = {"erun": self._run}

    def unreachable(self, command: str) -> CommandResult:
        return CommandResult(returncode=3, stderr=f"{command}: no scheduler\n")

    def _run(self, _: FakeScheduler, call: Invocation) -> CommandResult:
        tasks = [Task(argv=call.arguments, environment={"RANK": str(at)}) for at in range(self.count)]
        return TaskLaunch(tasks=tasks, **self.options)


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(1000)) as scheduler:
        yield scheduler


def run(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60, **options)


def test_every_task_runs_where_the_command_was_called(scheduler: FakeScheduler, tmp_path: Path) -> None:
    with on_path(Starter(), scheduler):
        script = 'echo "$RANK $OWN $(pwd)"; echo "error $RANK" >&2'
        done = run("erun", "sh", "-c", script, cwd=tmp_path, env={**os.environ, "OWN": "mine"})

    assert sorted(done.stdout.splitlines()) == [f"{rank} mine {tmp_path}" for rank in range(3)]
    assert sorted(done.stderr.splitlines()) == [f"error {rank}" for rank in range(3)]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit $((7 - RANK))", 7),
        ("[ $RANK = 1 ] || exit 2; kill -9 $$", 128 + signal.SIGKILL),
    ],
    ids=["success", "largest", "signal"],
)
def test_the_exit_code_is_the_largest(scheduler: FakeScheduler, script: str, code: int) -> None:
    with on_path(Starter(), scheduler):
        assert run("erun", "sh", "-c", script).returncode == code


def test_tasks_run_in_parallel(scheduler: FakeScheduler, tmp_path: Path) -> None:
    """Each of two waits for the other at a named pipe."""
    os.mkfifo(tmp_path / "pipe")
    script = "[ $RANK = 0 ] && echo hello >pipe || cat pipe"
    with on_path(Starter(2), scheduler):
        assert run("erun", "sh", "-c", script, cwd=tmp_path).stdout == "hello\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_tasks_have_functions_that_bash_exports(scheduler: FakeScheduler) -> None:
    script = "hello() { echo hello; }; export -f hello; erun bash -c hello"
    with on_path(Starter(2), scheduler):
        assert run("bash", "-c", script).stdout == "hello\n" * 2


@pytest.mark.parametrize("chosen", [0, 2, None])
def test_one_task_has_standard_input(scheduler: FakeScheduler, chosen: int | None) -> None:
    with on_path(Starter(stdin=chosen), scheduler):
        done = run("erun", "sh", "-c", 'echo "$RANK $(cat)"', input="text\n")

    expected = [f"{rank} text" if rank == chosen else f"{rank} " for rank in range(3)]
    assert sorted(done.stdout.splitlines()) == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_are_passed_on_to_every_task(
    scheduler: FakeScheduler, tmp_path: Path, number: signal.Signals
) -> None:
    program = "import os, signal, sys, pathlib\n"
    program += f"signal.signal({number:d}, lambda *_: sys.exit(40 + int(os.environ['RANK'])))\n"
    program += "pathlib.Path(os.environ['RANK']).touch()\nwhile True: signal.pause()\n"
    with (
        on_path(Starter(), scheduler),
        subprocess.Popen(["erun", sys.executable, "-c", program], cwd=tmp_path) as process,
    ):
        assert eventually(lambda: len(list(tmp_path.iterdir())) == 3)
        process.send_signal(number)

        assert process.wait(60) == 42


def test_tasks_ignore_only_signals_that_the_caller_ignores(scheduler: FakeScheduler) -> None:
    """Python ignores SIGPIPE; what yes(1) is ended by here."""
    with on_path(Starter(1), scheduler):
        assert run("sh", "-c", "{ erun yes; echo $? >&2; } | head -n 1").stderr == f"{128 + signal.SIGPIPE}\n"


@pytest.mark.parametrize(
    ("name", "code"), [("nothing-here", 41), ("./text", 42)], ids=["missing", "no program"]
)
def test_a_task_that_cannot_start_is_reported(
    scheduler: FakeScheduler, tmp_path: Path, name: str, code: int
) -> None:
    (tmp_path / "text").write_text("text")
    with on_path(Starter(2, not_found=41, not_executable=42), scheduler):
        done = run("erun", name, cwd=tmp_path)

    assert done.returncode == code
    assert done.stderr.startswith(f"erun: error: {name}: ")


def test_the_first_failure_may_end_the_others(scheduler: FakeScheduler) -> None:
    """One of the others ignores TERM."""
    script = "case $RANK in 0) exec sleep 1000;; 1) exit 5;; 2) trap '' TERM; exec sleep 1000;; esac"
    with on_path(Starter(ends_on_failure=True), scheduler):
        assert run("erun", "sh", "-c", script).returncode == 5


def test_tasks_end_with_the_batch_system(scheduler: FakeScheduler, tmp_path: Path) -> None:
    with on_path(Starter(), scheduler):
        script = 'touch "$RANK"; exec sleep 1000'
        process = subprocess.Popen(["erun", "sh", "-c", script], cwd=tmp_path)
        assert eventually(lambda: len(list(tmp_path.iterdir())) == 3)

    assert process.wait(60) == 128 + signal.SIGKILL


def test_a_command_with_a_fault_starts_nothing(scheduler: FakeScheduler) -> None:
    with on_path(Starter(), scheduler):
        scheduler.faults.fail("erun", stderr="no\n")
        done = run("erun", "echo", "hello")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no\n")


def test_a_call_within_the_process_starts_nothing(scheduler: FakeScheduler) -> None:
    launch = answer(scheduler, Starter(2), Invocation(argv=["erun", "false"]))

    assert launch == TaskLaunch(tasks=[Task(argv=["false"], environment={"RANK": rank}) for rank in "01"])


def test_commands_get_their_directory(scheduler: FakeScheduler) -> None:
    with on_path(Starter(), scheduler):
        run("erun", "true")

        assert scheduler.log[-1].invocation.folder == os.environ["PATH"].partition(os.pathsep)[0]


def test_a_command_that_starts_tasks_imports_little() -> None:
    """These modules would double the time of its start."""
    slow = {"contextlib", "enum", "signal", "threading", "typing"}
    folder = str(Path(task_runner.__file__).parent)
    program = "import sys; sys.path.append(sys.argv[1]); import client, task_runner; print(*sys.modules)"

    imported = run(sys.executable, "-ISE", "-c", program, folder).stdout.split()

    assert "task_runner" in imported
    assert slow & {*imported} == set()
