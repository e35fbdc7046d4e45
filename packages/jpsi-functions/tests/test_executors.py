"""Calls on a batch system, behind ssh, and in pilots."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest

import functions_to_call as calls
import jpsi
from jpsi_functions import CallError, FunctionExecutor, JobEndedError
from jpsi_pilot.config import PilotConfig
from jpsi_slurm.config import SlurmConfig


@pytest.fixture
def remote(login: Path, slurm: None) -> Iterator[FunctionExecutor]:
    """Provide an executor of a Slurm behind ssh."""
    with FunctionExecutor("slurm", url="ssh://cluster", python=sys.executable) as executor:
        yield executor


def test_ten_thousand_calls_are_a_few_jobs_and_little_memory(slurm: None) -> None:
    tracemalloc.start()
    try:
        with FunctionExecutor("slurm") as executor:
            total = sum(executor.map(float, range(10_000)))
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert total == sum(range(10_000))
    assert len(list((Path.home() / "state/jpsi/work/slurm/jobs").iterdir())) == 64
    assert len(list((Path.home() / "state/jpsi/work/slurm/arrays").iterdir())) == 1
    assert peak < 4096 * 10_000


def test_no_call_starts_once_map_took_too_long_under_a_quota(slurm: None, tmp_path: Path) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    with FunctionExecutor("slurm", config=SlurmConfig(max_queued=1)) as executor:
        first = executor.submit(calls.wait_for, str(gate), 1)
        while not first.running():
            time.sleep(0.01)
        results = executor.map(calls.count, [str(ran)] * 3, range(3), timeout=0, chunksize=1)
        while executor._queue._waiting:
            time.sleep(0.01)
        with pytest.raises(TimeoutError):
            next(results)
        gate.touch()

    assert first.result() == 1
    assert not ran.exists()


def test_a_call_on_slurm_has_a_native_id_and_can_be_cancelled_while_it_runs(
    slurm: None, tmp_path: Path
) -> None:
    with FunctionExecutor("slurm", walltime="1h") as executor:
        assert executor.submit(calls.square, 5).result(60) == 25
        future = executor.submit(calls.slow, str(tmp_path / "started"))
        while not (tmp_path / "started").exists():
            time.sleep(0.01)

        assert future.job.native_id is not None
        assert future.cancel()
        status = future.job.wait(60)

    assert status is not None
    assert status.state is jpsi.JobState.CANCELED


def test_an_exception_and_a_death_on_slurm_are_those_of_the_call(slurm: None) -> None:
    with FunctionExecutor("slurm") as executor:
        with pytest.raises(ZeroDivisionError):
            executor.submit(calls.divide, 1, 0).result(60)
        with pytest.raises(JobEndedError, match="exit code 3"):
            executor.submit(calls.leave, 3).result(60)


def test_behind_ssh_the_files_travel_there_and_back(remote: FunctionExecutor, login: Path) -> None:
    factor = 3
    futures = [remote.submit(lambda it: it * factor, it) for it in range(3)]

    assert [it.result(60) for it in futures] == [0, 3, 6]
    assert remote.submit(str.upper, "a").result(60) == "A"
    assert remote.submit(Path.cwd).result(60) == login
    assert list(remote.map(lambda it: it + 1, range(10), chunksize=4)) == [*range(1, 11)]
    assert list((login / ".local/state/jpsi-functions").iterdir()) == []


def test_behind_ssh_exceptions_and_missing_modules_come_back(remote: FunctionExecutor) -> None:
    with pytest.raises(ZeroDivisionError):
        remote.submit(lambda: 1 / 0).result(60)
    with pytest.raises(CallError, match="needs the module functions_to_call, which"):
        remote.submit(calls.square, 3).result(60)


def test_calls_run_in_pilots() -> None:
    config = PilotConfig(target="local", max_pilots=1, cores_per_node=4, idle_time=timedelta(seconds=1))
    with FunctionExecutor("pilot", config=config) as executor:
        futures = [executor.submit(calls.square, it) for it in range(8)]

        assert [it.result(120) for it in futures] == [it * it for it in range(8)]


def test_a_configured_target_is_an_executor(tmp_path: Path) -> None:
    config = Path.home() / "config/jpsi/config.yaml"
    config.parent.mkdir(parents=True)
    work = tmp_path / "scratch"
    config.write_text(f"targets:\n  here:\n    executor: local\n    config:\n      work_directory: {work}\n")
    with FunctionExecutor("here") as executor:
        assert executor.submit(calls.square, 4).result(60) == 16

        (session,) = (work / "functions/local@here").iterdir()
        assert (session / "worker.py").exists()


def test_with_progress_the_bar_counts_calls(monkeypatch: pytest.MonkeyPatch, slurm: None) -> None:
    shown: dict[str, jpsi.JobState] = {}

    class Bar:
        def __init__(self, total: int) -> None:
            assert total == 10

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def show(self, job: str, state: jpsi.JobState) -> None:
            shown[job] = state

    monkeypatch.setattr("jpsi_functions.executor.progress_bar", Bar)
    with FunctionExecutor("slurm", with_progress=True) as executor:
        assert sum(executor.map(float, range(10), chunksize=4)) == 45

    assert len(shown) == 10
    assert set(shown.values()) <= {jpsi.JobState.ACTIVE, jpsi.JobState.COMPLETED}
