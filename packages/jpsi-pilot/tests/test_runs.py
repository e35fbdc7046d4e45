"""Runs on a node: their exit codes, their environment, and the removal of all their processes."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import attrs
import psutil
import pytest

from fake_processes import FakeProcesses
from jpsi import JobAttributes, JobExecutor, JobSpec
from jpsi_engine.local.starter import Starter, StarterLostError
from jpsi_pilot.client import process_name
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.node.node_log import NodeLog, read_node_log
from jpsi_pilot.node.runs import NoDeviceError, Runs
from jpsi_pilot.node.sessions import end_marked, session_members
from jpsi_pilot.protocol.values import End, Task
from jpsi_testing.conformance.base import Sign
from jpsi_testing.waiting import eventually
from pilot_support import is_alive, make_task, markers, write_job

PATIENCE = 30.0
MINUTE = JobAttributes(duration=timedelta(minutes=1))


@pytest.fixture
def log(tmp_path: Path) -> NodeLog:
    return NodeLog(tmp_path / "nodes" / "node.1")


@pytest.fixture
def runs(tmp_path: Path, log: NodeLog) -> Runs:
    (tmp_path / "environment").write_text(json.dumps({"PATH": "/usr/bin:/bin", "GIVEN": "\u00e4"}))
    return Runs(tmp_path, log)


#: Returns a task that is a shell command, as `make_task` makes it.
MakeTask = Callable[..., Task]


@pytest.fixture(params=["script", "program"])
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeTask]:
    """Return a function that makes tasks whose scripts a shell runs, or whose programs the node starts."""
    if request.param == "script":
        yield make_task
        return
    config = PilotConfig(work_directory=tmp_path / "work", gpus_per_node=8)
    with JobExecutor.get_instance("pilot", config=config) as executor:

        def make(script: str, native_id: str = "a-1", **fields: Any) -> Task:
            spec = JobSpec("/bin/sh", ["-c", script], directory=Path("/"), attributes=MINUTE)
            return make_task(write_job(executor, spec), native_id, **fields)

        yield make


def start_run(runs: Runs, it: Task, sign: Sign) -> Callable[[], End]:
    """Start a run that signals its start; return a function that waits for its end."""
    found: list[End] = []
    thread = threading.Thread(target=lambda: found.append(runs.run(it)))
    thread.start()
    assert sign.wait(PATIENCE)

    def end() -> End:
        thread.join(PATIENCE)
        return found[0]

    return end


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_a_run_has_the_exit_code_of_its_script(
    task: MakeTask, runs: Runs, log: NodeLog, script: str, code: int
) -> None:
    assert runs.run(task(script)) == End(code=code)
    assert read_node_log(log.path).ends == {("a-1", 0): End(code=code)}


def test_a_run_has_only_the_environment_and_umask_of_its_submission(
    task: MakeTask, runs: Runs, tmp_path: Path
) -> None:
    runs.run(task(f"env >{tmp_path}/out; umask >>{tmp_path}/out"))

    content = (tmp_path / "out").read_bytes().splitlines()
    assert b"GIVEN=\xe4" in content
    assert b"JPSI_PILOT_JOB=a-1" in content
    assert not [it for it in content if it.startswith(b"HOME=")]
    assert content[-1] == b"0027"


def test_processes_that_a_run_leaves_behind_are_ended(task: MakeTask, runs: Runs, tmp_path: Path) -> None:
    runs.run(task(f"sleep 1000 & echo $! >{tmp_path}/pid"))

    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_run_is_ended_at_its_time_limit(task: MakeTask, runs: Runs) -> None:
    assert runs.run(task("sleep 1000", seconds=1)) == End(code=143, why="timeout")


@pytest.mark.parametrize("trap", ["", "trap '' TERM;", "trap 'exit 0' TERM;"])
def test_stop_ends_all_processes_of_a_run(task: MakeTask, runs: Runs, tmp_path: Path, trap: str) -> None:
    sign = Sign(tmp_path / "sign")
    script = f"{trap} echo $$ >{tmp_path}/pid; sleep 1000 & echo >{sign.path}; while :; do sleep 0.05; done"
    end = start_run(runs, task(script), sign)

    runs.stop("a-1")

    assert end().why == "cancel"
    assert session_members(int((tmp_path / "pid").read_text())) == []


def test_a_run_that_is_stopped_before_it_begins_never_begins(
    task: MakeTask, runs: Runs, tmp_path: Path
) -> None:
    runs.stop("a-1")

    assert runs.run(task(f"touch {tmp_path}/ran")) == End(code=None, why="cancel")
    assert not (tmp_path / "ran").exists()


def test_a_run_that_ends_with_the_pilot_has_that_reason(task: MakeTask, runs: Runs, tmp_path: Path) -> None:
    sign = Sign(tmp_path / "sign")
    end = start_run(runs, task(f"echo >{sign.path}; sleep 1000"), sign)

    runs.end_all()

    assert end() == End(code=143, why="pilot")
    assert runs.run(task("true", "a-2")) == End(code=None, why="pilot")


def test_a_run_that_has_not_begun_when_a_node_has_ended_its_last_never_begins(
    runs: Runs, task: MakeTask, tmp_path: Path
) -> None:
    """The node exits then, and the next agent has the job wait again."""
    runs.drain()

    assert runs.run(task(f"touch {tmp_path}/ran")) == End(code=None, why="pilot")
    assert not (tmp_path / "ran").exists()


def test_a_run_that_is_signalled_before_its_worker_ends_with_the_pilot(
    task: MakeTask, runs: Runs, tmp_path: Path
) -> None:
    sign = Sign(tmp_path / "sign")
    end = start_run(runs, task(f"echo >{sign.path}; kill -TERM $$"), sign)

    runs.close()

    assert end() == End(code=143, why="pilot")


def test_a_run_may_end_by_the_same_signal_without_the_pilot(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, runs: Runs
) -> None:
    monkeypatch.setattr("jpsi_pilot.node.runs._PILOT_END_TIMEOUT", 0.01)

    assert runs.run(task("kill -TERM $$")) == End(code=143)


def test_a_log_lists_the_sessions_that_have_not_ended(log: NodeLog) -> None:
    log.record_worker(16)
    log.record_beginning("a-1", 0)
    log.record_begun("a-1", 0, 17)
    log.record_beginning("a-2[3]", 1)
    log.record_begun("a-2[3]", 1, 18, 7)
    log.record_ended("a-1", 0, End(code=3))
    log.record_ended("a-3", 0, End(code=None, why="cancel"))

    content = read_node_log(log.path)

    assert content.worker == process_name(16)
    assert content.sessions == {("a-2[3]", 1): "18.7"}
    assert content.begun == {("a-1", 0), ("a-2[3]", 1)}
    assert content.ends == {("a-1", 0): End(code=3), ("a-3", 0): End(code=None, why="cancel")}
    assert not content.over
    log.record_over()
    assert read_node_log(log.path).over


def test_an_incomplete_line_is_skipped(log: NodeLog) -> None:
    log.record_beginning("a-1", 0)
    with log.path.open("a") as file:
        file.write("ended a-1 0 1")

    assert read_node_log(log.path).ends == {}


def test_each_run_has_gpus_of_its_own_and_releases_them_at_its_end(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: NodeLog
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
    (tmp_path / "environment").write_text(json.dumps({"CUDA_VISIBLE_DEVICES": "of the client"}))
    runs = Runs(tmp_path, log)
    show = f'printf %s "$CUDA_VISIBLE_DEVICES" >{tmp_path}'
    sign = Sign(tmp_path / "sign")
    first = start_run(runs, task(f"{show}/a; echo >{sign.path}; sleep 1000", "a-1", gpus=1), sign)

    assert runs.run(task(f"{show}/b", "a-2", gpus=2)).code == 0
    runs.stop("a-1")
    first()
    assert runs.run(task(f"{show}/c", "a-3", gpus=3)).code == 0
    assert runs.run(task(f"{show}/none", "a-4", gpus=0)).code == 0
    assert runs.run(task(f"{show}/uncounted", "a-5")).code == 0

    content = {it: (tmp_path / it).read_text() for it in ("a", "b", "c", "none", "uncounted")}
    assert content == {
        "a": "GPU-a",
        "b": "GPU-b,GPU-c",
        "c": "GPU-a,GPU-b,GPU-c",
        "none": "",
        "uncounted": "of the client",
    }


def test_a_run_for_which_the_node_has_too_few_gpus_does_not_begin(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: NodeLog
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "environment").write_text("{}")

    end = Runs(tmp_path, log).run(task(f"touch {tmp_path}/ran", gpus=2))

    assert (end.code, end.why) == (None, "unable")
    assert "it needs 2 GPUs" in end.message
    assert not (tmp_path / "ran").exists()


def test_gpus_that_are_held_for_a_job_of_several_nodes_are_not_assigned_to_others(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: NodeLog
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    (tmp_path / "environment").write_text("{}")
    runs = Runs(tmp_path, log)
    show = f'printf %s "$CUDA_VISIBLE_DEVICES" >{tmp_path}'

    assert runs.hold("a-1", 1) == {"CUDA_VISIBLE_DEVICES": "GPU-a"}
    assert runs.hold("a-2", None) == {}
    assert runs.run(task(f"{show}/beside", "a-3", gpus=1)).code == 0
    with pytest.raises(NoDeviceError, match="it needs 2 GPUs"):
        runs.hold("a-4", 2)
    runs.release("a-1")
    assert runs.run(task(f"{show}/after", "a-5", gpus=2)).code == 0

    assert (tmp_path / "beside").read_text() == "GPU-b"
    assert (tmp_path / "after").read_text() == "GPU-a,GPU-b"


def test_release_ends_the_processes_of_its_job_and_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs: Runs
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    processes = FakeProcesses(tmp_path, monkeypatch, pidfds=True)
    monkeypatch.setattr("jpsi_pilot.node.runs.end_marked", functools.partial(end_marked, proc=processes.proc))
    remaining = processes.start({"JPSI_PILOT_JOB": "of-this-1", "SLURM_JOB_ID": "7"})
    # a job of Slurm that the job has submitted, and another job in the pilot
    processes.start({"JPSI_PILOT_JOB": "of-this-1", "SLURM_JOB_ID": "8"})
    processes.start({"JPSI_PILOT_JOB": "of-this-10", "SLURM_JOB_ID": "7"})

    runs.release("of-this-1")

    assert processes.killed == [(remaining, "pidfd")]


@pytest.mark.parametrize("line", ["record_beginning", "record_begun"])
def test_a_run_whose_begin_cannot_be_recorded_is_not_started(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, runs: Runs, tmp_path: Path, line: str
) -> None:
    monkeypatch.setattr(NodeLog, line, raise_disk_full)

    end = runs.run(task(f"sleep 1000 & echo $! >{tmp_path}/pid; sleep 1000"))

    assert (end.code, end.why) == (None, "unable")
    assert "No space left" in end.message
    runs.drain()
    pid = tmp_path / "pid"
    assert not (pid.exists() and pid.read_text() and is_alive(int(pid.read_text())))


def test_a_run_that_is_stopped_while_it_is_started_is_ended(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, task: MakeTask
) -> None:
    """A file system that does not answer may delay the start for long; nothing else waits for that."""
    record = NodeLog.record_begun

    def stop_and_record(log: NodeLog, native_id: str, *process: int) -> None:
        runs.stop(native_id)
        record(log, native_id, *process)

    monkeypatch.setattr(NodeLog, "record_begun", stop_and_record)

    assert runs.run(task("sleep 1000")) == End(code=143, why="cancel")


def test_a_run_whose_program_may_have_been_started_is_ended_and_lost(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, log: NodeLog, tmp_path: Path
) -> None:
    config = PilotConfig(work_directory=tmp_path / "work")
    with JobExecutor.get_instance("pilot", config=config) as executor:
        spec = JobSpec("/bin/sleep", ["1000"], directory=Path("/"), attributes=MINUTE)
        it = make_task(write_job(executor, spec))
    ask = Starter._ask

    def ask_in_vain(*arguments: Any) -> NoReturn:
        ask(*arguments)
        raise StarterLostError

    monkeypatch.setattr(Starter, "_ask", ask_in_vain)

    end = runs.run(it)

    assert (end.code, end.why) == (None, "lost")
    assert read_node_log(log.path).ends["a-1", 0].why == "lost"
    assert not read_node_log(log.path).sessions
    marks = {"JPSI_PILOT_JOB=a-1", f"JPSI_PILOT_LOG={log.path}"}
    assert not [it for it in psutil.process_iter(["environ"]) if marks <= _variables(it)]
    runs.drain()


def _variables(process: psutil.Process) -> set[str]:
    return {f"{name}={it}" for name, it in (process.info["environ"] or {}).items()}


def test_a_run_whose_end_cannot_be_recorded_still_reports_it(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, runs: Runs
) -> None:
    append = NodeLog._append

    def fail_at_end(log: NodeLog, line: str) -> None:
        if line.startswith("ended"):
            raise_disk_full()
        append(log, line)

    monkeypatch.setattr(NodeLog, "_append", fail_at_end)

    assert runs.run(task("exit 3")) == End(code=3)
    runs.drain()


def test_a_run_that_cannot_be_monitored_is_ended_and_lost(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, runs: Runs, log: NodeLog
) -> None:
    processes: list[int] = []

    def fail(it: subprocess.Popen[bytes], _: float) -> bool:
        processes.append(it.pid)
        raise_no_thread()

    monkeypatch.setattr("jpsi_pilot.node.runs.wait_for_exit", fail)

    end = runs.run(task("trap '' TERM; sleep 1000"))

    assert (end.code, end.why) == (None, "lost")
    assert "could not monitor the job: can't start new thread" in end.message
    assert read_node_log(log.path).ends["a-1", 0].why == "lost"
    assert not [it for pid in processes for it in session_members(pid)]
    runs.drain()


def test_a_run_whose_stop_fails_is_ended_at_its_time_limit(
    task: MakeTask, monkeypatch: pytest.MonkeyPatch, runs: Runs, tmp_path: Path
) -> None:
    sign = Sign(tmp_path / "sign")
    end = start_run(runs, task(f"echo >{sign.path}; sleep 1000", seconds=1), sign)
    # the thread that has started it may not have noted so
    assert eventually(lambda: runs._runs["a-1"].is_started)
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_pilot.node.runs.threading.Thread.start", raise_no_thread)
        with pytest.raises(RuntimeError):
            runs.stop("a-1")

    assert (end().code, end().why) == (143, "cancel")


def raise_no_thread(*_: object) -> None:
    msg = "can't start new thread"
    raise RuntimeError(msg)


def raise_disk_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_a_node_starts_a_program_without_a_shell(
    runs: Runs, task: MakeTask, log: NodeLog, tmp_path: Path
) -> None:
    runs.run(task(f"ps -o ppid= -p $$ >{tmp_path}/parent"))

    starter = read_node_log(log.path).starter
    assert process_name(int((tmp_path / "parent").read_text())) == starter


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_a_node_replaces_the_process_that_starts_programs(
    runs: Runs, task: MakeTask, log: NodeLog, tmp_path: Path
) -> None:
    runs.run(task("exit 0"))
    first = read_node_log(log.path).starter
    os.kill(int(first.partition(".")[0]), signal.SIGKILL)
    starter = runs._programs._starter
    assert starter is not None
    assert eventually(lambda: starter.is_gone)

    other = task(f"echo $PPID >{tmp_path}/parent", "a-2")
    assert runs.run(other).code == 0

    second = read_node_log(log.path).starter
    assert process_name(int((tmp_path / "parent").read_text())) == second != first


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_a_job_has_a_shell_if_no_process_can_be_started_that_starts_programs(
    monkeypatch: pytest.MonkeyPatch, runs: Runs, task: MakeTask, log: NodeLog, tmp_path: Path
) -> None:
    monkeypatch.setattr(NodeLog, "record_starter", raise_disk_full)

    assert runs.run(task(f"ps -o ppid= -p $$ >{tmp_path}/parent")) == End(code=0, why="")

    assert not read_node_log(log.path).starter
    assert markers(tmp_path) == {"active", "exit.run.0"}


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_a_log_names_a_program_as_the_kernel_does(
    runs: Runs, task: MakeTask, log: NodeLog, tmp_path: Path
) -> None:
    """The node supervisor ends no other process that has got the pid since."""
    sign, pid = Sign(tmp_path / "sign"), tmp_path / "pid"
    end = start_run(runs, task(f"echo $$ >{pid}; echo >{sign.path}; sleep 1000"), sign)
    assert eventually(lambda: runs._runs["a-1"].is_started)

    leader = read_node_log(log.path).sessions["a-1", 0]
    assert leader == process_name(int(pid.read_text()))
    runs.stop("a-1")
    end()


@pytest.mark.parametrize("task", ["program"], indirect=True)
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", {"active", "exit.run.0"}),
        ("exit 7", {"active", "exit.run.7"}),
        ("kill -KILL $$", {"active", "exit.run.137"}),
        ("kill -USR1 $$", {"active", "signalled", "exit.run.138"}),
    ],
)
def test_a_program_leaves_the_markers_of_a_script(
    runs: Runs, task: MakeTask, tmp_path: Path, script: str, expected: set[str]
) -> None:
    runs.run(task(script))

    assert markers(tmp_path) == expected


@pytest.mark.parametrize("task", ["program"], indirect=True)
@pytest.mark.parametrize(("trap", "code"), [("", 143), ("trap 'exit 5' TERM;", 5), ("trap '' TERM;", 137)])
def test_the_markers_of_a_program_that_is_ended_say_so(
    runs: Runs, task: MakeTask, tmp_path: Path, trap: str, code: int
) -> None:
    sign = Sign(tmp_path / "sign")
    end = start_run(runs, task(f"{trap} echo >{sign.path}; while :; do sleep 0.05; done"), sign)

    runs.stop("a-1")

    assert end() == End(code=code, why="cancel")
    assert markers(tmp_path) == {"active", "signalled", f"exit.run.{code}"}


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_the_children_of_a_program_are_asked_to_end_before_they_are_killed(
    runs: Runs, task: MakeTask, tmp_path: Path
) -> None:
    sign, asked = Sign(tmp_path / "sign"), tmp_path / "asked"
    child = f"trap 'echo >{asked}; exit' TERM; echo >{sign.path}; while :; do sleep 0.05; done"
    end = start_run(runs, task(f"trap : TERM; ({child}) & wait; wait", delay=60), sign)

    runs.stop("a-1")

    assert end().why == "cancel"
    assert asked.exists()


@pytest.mark.parametrize("task", ["program"], indirect=True)
def test_a_job_that_is_started_again_has_a_shell(
    runs: Runs, task: MakeTask, log: NodeLog, tmp_path: Path
) -> None:
    parents = tmp_path / "parents"
    it = task(f"echo $PPID >>{parents}; [ $(wc -l <{parents}) -gt 1 ] || kill -KILL $$; exit 7")

    assert [runs.run(attrs.evolve(it, restarts=count)).code for count in range(3)] == [137, 7, 7]

    first, second = map(int, parents.read_text().split())
    assert process_name(first) == read_node_log(log.path).starter
    assert first != second, "and a run that has ended by itself is not repeated"
    assert {"exit.run.137", "1.exit.run.7"} <= markers(tmp_path)
