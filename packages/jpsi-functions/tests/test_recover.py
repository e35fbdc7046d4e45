"""Calls whose program was killed: their futures come back, and none runs twice."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import wait
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

import functions_to_call as calls
from jpsi import JobState, SubmitException
from jpsi_functions import CallError, FunctionExecutor, JobEndedError, sessions

# The program kills itself at the n-th time that it changes something on disk, or runs a command.
_KILLED = """
left = {after}
def hook(event, _):
    global left
    if event in ("os.mkdir", "os.rename", "os.link", "subprocess.Popen", "os.posix_spawn", "open"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
"""


def test_futures_whose_results_are_there_or_come_are_found(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    work = f"executor.submit(calls.count, {str(ran)!r}, 1).result()\n"
    work += f"executor.submit(calls.wait_for, {str(gate)!r}, 2)\n"
    work += f"executor.map(calls.count, [{str(ran)!r}] * 5, range(3, 8), chunksize=2)\n"
    work += "executor.submit(calls.divide, 1, 0)"
    killed(work, workers=8, after=lambda: ran.exists() and len(ran.read_text().split()) == 6)

    with FunctionExecutor("local") as executor:
        futures = executor.recover()
        gate.touch()

        assert [it.result(60) for it in futures[:7]] == [*range(1, 8)]
        with pytest.raises(ZeroDivisionError):
            futures[7].result(60)
        assert futures[2].job is futures[3].job is not futures[4].job
    assert sorted(ran.read_text().split()) == ["1", *"34567"]


def test_a_call_that_was_never_submitted_is_submitted(tmp_path: Path, killed: Callable[..., None]) -> None:
    gate, started, ran = tmp_path / "gate", tmp_path / "started", tmp_path / "ran"
    work = (
        f"executor.submit(lambda: (open({str(started)!r}, 'w').close(), calls.wait_for({str(gate)!r}, 0)))\n"
    )
    work += f"executor.submit(calls.count, {str(ran)!r}, 1)"
    killed(work, workers=1, after=started.exists)

    with FunctionExecutor("local") as executor:
        _, future = executor.recover()

        assert future.result(60) == 1
        gate.touch()
    assert ran.read_text() == "1\n"


def test_calls_of_programs_that_run_are_not_recovered_and_shut_down_ones_are_gone(tmp_path: Path) -> None:
    with FunctionExecutor("local") as executor, FunctionExecutor("local") as other:
        assert executor.submit(calls.square, 3).result(60) == 9

        assert other.recover() == []
    with FunctionExecutor("local") as later:
        assert later.recover() == []


def test_recovered_calls_are_gone_after_shutdown(tmp_path: Path, killed: Callable[..., None]) -> None:
    killed("executor.submit(calls.square, 3).result()", after=lambda: True)

    with FunctionExecutor("local") as executor:
        assert [it.result(60) for it in executor.recover()] == [9]
    with FunctionExecutor("local") as executor:
        assert executor.recover() == []


def test_calls_whose_jobs_cannot_be_read_are_there_for_the_next_time(
    tmp_path: Path, killed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> NoReturn:
        raise SubmitException("the disk is away")

    for value in (3, 4):
        killed(f"executor.submit(calls.square, {value}).result()", after=lambda: True)

    with FunctionExecutor("local") as executor:
        recall = executor.jobs.recall
        answers = iter((recall, refuse))
        monkeypatch.setattr(executor.jobs, "recall", lambda ids: next(answers)(ids))  # noqa: PLW0108  another one each time
        with pytest.raises(SubmitException, match="the disk is away"):
            executor.recover()
    with FunctionExecutor("local") as executor:
        assert [it.result(60) for it in executor.recover()] == [9, 16]


def test_a_call_that_was_cancelled_or_refused_is_not_made(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    work = f"executor.submit(calls.wait_for, {str(gate)!r}, 1)\n"
    work += f"executor.submit(calls.count, {str(ran)!r}, 2).cancel()\n"
    work += "import jpsi\nrefusing = FunctionExecutor('local', spec=jpsi.JobSpec(launcher='nonsense'))\n"
    work += f"refusing.submit(calls.count, {str(ran)!r}, 3).exception()"
    killed(work, workers=1, after=lambda: True)

    with FunctionExecutor("local") as executor:
        futures = executor.recover()
        gate.touch()
        wait(futures, 60)

        assert [it.cancelled() for it in futures] == [False, True, False]
        assert futures[0].result() == 1
        with pytest.raises(CallError, match="nonsense"):
            futures[2].result()
    assert not ran.exists()


def test_a_job_that_was_to_be_cancelled_is_cancelled_after_recover(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    started = tmp_path / "started"
    killed(f"executor.submit(calls.slow, {str(started)!r})", after=started.exists)
    (call,) = _home().glob("functions/local/*/calls/*")
    (call / "cancelled").touch()

    with FunctionExecutor("local") as executor:
        (future,) = executor.recover()

        assert future.cancelled()
    assert future.job.status.state is JobState.CANCELED


def test_shutdown_without_waiting_leaves_the_calls_for_later(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    gate = tmp_path / "gate"
    work = f"executor.submit(calls.wait_for, {str(gate)!r}, 5)\nexecutor.shutdown(wait=False)"
    killed(work, after=lambda: bool(list(_home().glob("local/*/jobs/*/claim*"))))

    with FunctionExecutor("local") as executor:
        (future,) = executor.recover()
        gate.touch()
        assert future.result(60) == 5


def test_a_call_that_began_and_has_no_job_on_disk_is_not_made_again(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    killed(f"executor.submit(calls.count, {str(tmp_path / 'ran')!r}, 1).result()", after=lambda: True)
    (job,) = _home().glob("local/*/jobs/*")
    (call,) = _home().glob("functions/local/*/calls/*")
    (call / "result").rename(call / "result.part")
    (call / "result.part").write_bytes(b"")
    for it in job.iterdir():
        it.unlink()
    job.rmdir()

    with FunctionExecutor("local") as executor:
        (future,) = executor.recover()

        with pytest.raises(CallError, match="may have run"):
            future.result(60)
    assert (tmp_path / "ran").read_text() == "1\n"


def test_a_job_that_was_killed_says_so_after_recover(tmp_path: Path, killed: Callable[..., None]) -> None:
    killed("import concurrent.futures as f; f.wait([executor.submit(calls.kill_itself)])", after=lambda: True)

    with FunctionExecutor("local") as executor:
        (future,) = executor.recover()

        with pytest.raises(JobEndedError, match="exit code 137"):
            future.result(60)


def test_a_call_that_left_a_checkpoint_goes_on(tmp_path: Path, killed: Callable[..., None]) -> None:
    log = tmp_path / "log"
    work = f"executor.submit(calls.Training(7), {str(log)!r})"
    killed(work, after=lambda: log.exists() and len(log.read_text().split()) >= 3)

    with FunctionExecutor("local") as executor:
        (future,) = executor.recover()

        assert future.result(60) == 7
    assert log.read_text().split() == [*"0123456"]


def test_a_session_that_another_program_makes_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "calls"
    taken = []

    def locked(path: Path) -> int:
        monkeypatch.undo()
        taken.extend(sessions.Session.abandoned(root))
        return sessions.lock_file(path)

    monkeypatch.setattr(sessions, "lock_file", locked)
    mine = sessions.Session.create(root, {})

    assert taken == list(sessions.Session.abandoned(root)) == []
    mine.close()
    assert [it.folder for it in sessions.Session.abandoned(root)] == [mine.folder]


def test_sessions_that_are_too_old_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "calls"
    old, new, mine = (sessions.Session.create(root, {}) for _ in range(3))
    for session in (old, mine):
        for folder in (session.folder / "calls", session.folder):
            os.utime(folder, (0, 0))
    for session in (old, new):
        session.close()

    sessions.remove_old(root, timedelta(days=30))

    assert {*root.iterdir()} == {new.folder, mine.folder}
    mine.close()


# from the files of the second call on to the end of the submission
@pytest.mark.parametrize(
    ("name", "after"),
    [
        *(("local", it) for it in (18, 33, 43, 45, 46, 47, 52, 58)),
        *(("slurm", it) for it in range(30, 75, 6)),
    ],
)
def test_a_program_that_was_killed_at_any_point_has_each_call_run_once(
    name: str, after: int, tmp_path: Path, killed: Callable[..., None], slurm: None
) -> None:
    ran = tmp_path / "ran"
    work = _KILLED.format(after=after)
    work += f"it = executor.map(calls.count, [{str(ran)!r}] * 4, range(4), chunksize=2)\n"
    work += f"executor.submit(calls.count, {str(ran)!r}, 4)"
    killed(work, name=name, workers=4, after=lambda: True)

    with FunctionExecutor(name) as executor:
        futures = executor.recover()
        wait(futures, 60)

        assert [it.exception() for it in futures] == [None] * len(futures)
        results = sorted(it.result() for it in futures)
    assert results == sorted(map(int, ran.read_text().split() if ran.exists() else []))
    assert len(results) == len({*results})


# The module of the functions is here only.
_BY_VALUE = "import cloudpickle\ncloudpickle.register_pickle_by_value(calls)\n"


def test_behind_ssh_calls_are_found_and_those_that_were_never_submitted_are_submitted(
    tmp_path: Path, killed: Callable[..., None], login: Path, slurm: None
) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    work = _BY_VALUE + f"executor.submit(calls.wait_for, {str(gate)!r}, 0)\n"
    work += f"executor.submit(calls.count, {str(ran)!r}, 1)"
    killed(work, name="slurm", url="ssh://cluster", workers=1, after=lambda: True)

    with FunctionExecutor("slurm", url="ssh://cluster", python=sys.executable) as executor:
        futures = executor.recover()
        gate.touch()

        assert [it.result(calls.PATIENCE) for it in futures] == [0, 1]
    assert ran.read_text() == "1\n"


# from the first submission on
@pytest.mark.parametrize("after", [60, 75, 90, 110, 130])
def test_behind_ssh_a_program_that_was_killed_at_any_point_has_each_call_run_once(
    after: int, tmp_path: Path, killed: Callable[..., None], login: Path, slurm: None
) -> None:
    ran = tmp_path / "ran"
    work = _BY_VALUE + _KILLED.format(after=after)
    work += f"it = executor.map(calls.count, [{str(ran)!r}] * 2, range(2), chunksize=1)\n"
    work += f"executor.submit(calls.count, {str(ran)!r}, 2).result()"
    killed(work, name="slurm", url="ssh://cluster", after=lambda: True)

    with FunctionExecutor("slurm", url="ssh://cluster", python=sys.executable) as executor:
        futures = executor.recover()
        wait(futures, calls.PATIENCE)

        assert [it.exception() for it in futures] == [None] * len(futures)
        results = sorted(it.result() for it in futures)
    assert results == sorted(map(int, ran.read_text().split() if ran.exists() else []))
    assert len(results) == len({*results})


def test_a_program_that_was_killed_while_it_removed_its_calls_leaves_none(
    tmp_path: Path, killed: Callable[..., None]
) -> None:
    work = "import shutil\nshutil.rmtree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
    work += "executor.submit(calls.square, 3).result()\nexecutor.shutdown()"
    killed(work, after=lambda: False)

    with FunctionExecutor("local") as executor:
        assert executor.recover() == []
    (left,) = (_home() / "functions/local").iterdir()
    os.utime(left, (1, 1))
    sessions.remove_old(_home() / "functions/local", timedelta(days=1))
    assert [*(_home() / "functions/local").iterdir()] == []


def _home() -> Path:
    return Path.home() / "state/jpsi/work"
