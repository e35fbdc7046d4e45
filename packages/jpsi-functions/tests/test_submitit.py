"""The plugin for submitit, and submitit's own tests of its local executor with the executor exchanged."""

from __future__ import annotations

import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import functions_to_call as calls

submitit = pytest.importorskip("submitit")
local = pytest.importorskip("submitit.local.local")
test_local = pytest.importorskip("submitit.local.test_local")

from jpsi_functions import submitit_plugin  # noqa: E402  it needs submitit
from jpsi_functions.submitit_plugin import JpsiExecutor, JpsiJob  # noqa: E402  it needs submitit

# Of submitit/local/test_local.py. Left out are those that look into the local processes of submitit
# (test_local_job, test_killed, test_make_subprocess, test_cancel), that start its executor `local` by name
# (test_setup), that count on a job that begins within a second (test_requeuing, test_custom_checkpoint), and
# a slow one that submitit leaves out as well (test_long_running_job).
_OWN_TESTS = (
    *("test_local_map_array", "test_local_submit_array", "test_local_error", "test_pickle_output_from_main"),
    *("test_get_first_task_error", "test_stdout", "test_load_submission", "test_weird_dir"),
)


@pytest.fixture(autouse=True)
def _modules_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    submitit_plugin._executor.cache_clear()


@pytest.mark.parametrize("name", _OWN_TESTS)
def test_own_tests_of_submitit_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LocalExecutor", JpsiExecutor)
    monkeypatch.setattr(local, "LocalJob", JpsiJob)
    folder = tmp_path / "weird '\"dir" if name == "test_weird_dir" else tmp_path / "folder"
    folder.mkdir()

    getattr(test_local, name)(folder)


def test_auto_executor_runs_calls_on_any_executor(tmp_path: Path, slurm: None) -> None:
    executor = submitit.AutoExecutor(tmp_path / "folder", cluster="jpsi")
    executor.update_parameters(
        jpsi_executor="slurm", timeout_min=10, cpus_per_task=1, mem_gb=0.5, name="squares"
    )

    jobs = executor.map_array(calls.square, range(3))

    assert [it.result() for it in jobs] == [0, 1, 4]
    assert jobs[0].job.executor.name == "slurm"
    assert jobs[0].job.native_id.endswith("_1")


def test_several_tasks_have_ranks(tmp_path: Path) -> None:
    executor = submitit.AutoExecutor(tmp_path, cluster="jpsi", jpsi_executor="local")
    executor.update_parameters(tasks_per_node=3, nodes=1)

    job = executor.submit(lambda: submitit.JobEnvironment().global_rank)

    assert job.results() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(job)).results() == [0, 1, 2]


def test_a_checkpoint_goes_on_in_another_job(tmp_path: Path) -> None:
    executor = JpsiExecutor(tmp_path)
    # the time at which the checkpoint is asked for has come when the job begins
    executor.update_parameters(timeout_min=60, signal_delay_s=3600)
    job = executor.submit(calls.Slacker(), slack=True)
    first = job.job

    assert job.result() == "worked hard"
    assert job.job.id != first.id == job.job_id
    # so long before the end of its walltime submitit takes it for a preemption, of which there may be many
    assert "(3 remaining timeouts)" in (job.stdout() or "")


def test_a_job_of_a_configured_target_is_followed(tmp_path: Path) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "jpsi/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f"targets: {{mine: {{executor: local, config: {{work_directory: {tmp_path / 'work'}}}}}}}\n"
    )

    job = JpsiExecutor(tmp_path / "folder", executor="mine").submit(calls.square, 3)

    assert job.result() == 9


def test_two_programs_that_judge_an_attempt_make_one_job_of_it(tmp_path: Path) -> None:
    executor = JpsiExecutor(tmp_path)
    executor.update_parameters(timeout_min=60, signal_delay_s=3600)
    job = executor.submit(calls.Slacker(), slack=True)
    first, ended = job._attempts()[0], job.job
    ended.wait()

    job._submit_again(first, ended)
    job._submit_again(first, ended)

    assert len(job._attempts()) == 2
    assert len([*tmp_path.glob("*_jpsi.*")]) == 2
    assert job.result() == "worked hard"


def test_a_job_can_be_cancelled(tmp_path: Path) -> None:
    job = JpsiExecutor(tmp_path).submit(calls.slow, str(tmp_path / "started"))
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    assert job.state == "RUNNING"

    job.cancel()

    job.wait()
    assert job.state == "INTERRUPTED"


def test_the_environment_of_the_job_is_that_of_jpsi(tmp_path: Path) -> None:
    def look() -> Any:
        environment = submitit.JobEnvironment()
        return environment.cluster, environment.job_id, environment.num_tasks, os.getpid(), sys.executable

    job = JpsiExecutor(tmp_path).submit(look)

    cluster, job_id, tasks, process, python = job.result()
    assert (cluster, job_id, tasks, python) == ("jpsi", job.job_id, 1, sys.executable)
    assert process != os.getpid()
