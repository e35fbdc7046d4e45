"""Callables that leave a checkpoint before their job ends, and go on in another."""

from __future__ import annotations

import signal
import time
from concurrent.futures import CancelledError
from datetime import timedelta
from pathlib import Path

import pytest

import functions_to_call as calls
import jpsi
from jpsi_functions import FunctionExecutor, JobEndedError

HOUR = timedelta(hours=1)
NEARLY_HOUR = HOUR - timedelta(microseconds=1)


@pytest.mark.parametrize("name", ["local", "slurm"])
def test_a_call_goes_on_in_further_jobs_and_keeps_its_future(name: str, tmp_path: Path, slurm: None) -> None:
    log = tmp_path / "log"
    with FunctionExecutor(name) as executor:
        future = executor.submit(calls.Training(5), str(log))
        first = future.job

        assert future.result(60) == 5
        assert future.job is not first
        assert future.job.status.state is jpsi.JobState.COMPLETED
    assert log.read_text().split() == ["0", "1", "2", "3", "4"]


def test_the_checkpoint_is_asked_for_before_the_walltime_is_over() -> None:
    # the time at which it is asked for has come when the job begins
    with FunctionExecutor("local", walltime=HOUR, checkpoint_time=NEARLY_HOUR) as executor:
        assert executor.submit(calls.Patient()).result(60) == "ready"


def test_a_job_that_is_preempted_while_it_loads_goes_on_in_another() -> None:
    with FunctionExecutor("local") as executor:
        assert executor.submit(calls.Loading(), calls.Preempting()).result(60) == "ready"


def test_a_function_without_a_checkpoint_that_is_preempted_while_it_loads_has_ended() -> None:
    with (
        FunctionExecutor("local") as executor,
        pytest.raises(JobEndedError, match=f"exit code {128 + signal.SIGUSR1}"),
    ):
        executor.submit(str, calls.Preempting()).result(60)


def test_a_checkpoint_at_the_beginning_of_the_job_is_refused() -> None:
    with pytest.raises(ValueError, match=r"walltime 1:00:00 must be longer than checkpoint_time 1:00:00"):
        FunctionExecutor("local", walltime=HOUR, checkpoint_time=HOUR)


@pytest.mark.parametrize("walltime", ["20s", "0"])
def test_any_walltime_will_do_for_functions_without_a_checkpoint(walltime: str) -> None:
    with FunctionExecutor("local", walltime=walltime) as executor:
        assert executor.submit(calls.square, 3).result(60) == 9


def test_the_calls_of_map_go_on_one_by_one(tmp_path: Path) -> None:
    with FunctionExecutor("local") as executor:
        logs = [str(tmp_path / it) for it in "ab"]

        assert list(executor.map(calls.Training(3), logs)) == [3, 3]


def test_an_exception_of_the_checkpoint_is_that_of_the_call() -> None:
    with (
        FunctionExecutor("local", walltime=HOUR, checkpoint_time=NEARLY_HOUR) as executor,
        pytest.raises(ValueError, match="no checkpoint"),
    ):
        executor.submit(calls.Stubborn()).result(60)


def test_a_job_that_was_cancelled_does_not_go_on() -> None:
    with FunctionExecutor("local") as executor:
        future = executor.submit(calls.Patient())
        while not future.running():
            time.sleep(0.01)

        future.job.cancel()

        with pytest.raises(CancelledError):
            future.result(60)
