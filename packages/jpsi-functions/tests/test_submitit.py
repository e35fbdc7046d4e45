"""The plugin for submitit, and submitit's own tests of its local executor with the executor exchanged."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import functions_to_call as calls
import jpsi
from jpsi_engine.host import parse_native_id
from jpsi_functions import locks

submitit = pytest.importorskip("submitit")
local = pytest.importorskip("submitit.local.local")
test_local = pytest.importorskip("submitit.local.test_local")

from submitit.core.utils import FailedJobError, JobPaths  # noqa: E402  as above

from jpsi_functions import submitit_plugin  # noqa: E402  it needs submitit
from jpsi_functions.submitit_plugin import JpsiExecutor, JpsiJob  # noqa: E402  it needs submitit

# Of submitit/local/test_local.py. Left out are test_make_subprocess, which starts a process of submitit's
# local executor and no job, the end of test_local_job, which looks at that process, test_long_running_job,
# which takes two minutes and which submitit leaves out as well, and test_requeuing, which needs a function
# that begins within a second: test_a_job_that_timed_out_too_often_is_not_continued has its property.
_OWN_TESTS = (
    *("test_local_map_array", "test_local_submit_array", "test_local_error", "test_pickle_output_from_main"),
    *("test_get_first_task_error", "test_stdout", "test_load_submission", "test_weird_dir"),
    *("test_killed", "test_cancel", "test_setup", "test_custom_checkpoint"),
)


class _Process:
    """What the tests do with the process of submitit's local executor."""

    def __init__(self, job: JpsiJob[Any]) -> None:
        self._job = job.job

    def send_signal(self, number: int) -> None:
        process = parse_native_id(self._job.native_id or "")
        assert process is not None
        os.kill(process.pid, number)
        self._job.wait()

    def poll(self) -> int | None:
        return -signal.SIGINT if self._job.status.state is jpsi.JobState.CANCELED else None


class _RunningJob(JpsiJob[Any]):
    """A job whose methods return when what they ask for is done, as the local processes of submitit do."""

    @property
    def _process(self) -> _Process:
        return _Process(self)

    def cancel(self, check: bool = True) -> None:
        super().cancel(check)
        self.job.wait()


class _RunningExecutor(JpsiExecutor):
    """An executor whose jobs run when they are returned, and whose walltime leaves time to start Python."""

    job_class = _RunningJob

    def _internal_process_submissions(self, delayed_submissions: list[Any]) -> list[Any]:
        submitted = super()._internal_process_submissions(delayed_submissions)
        for it in submitted:
            it.job.wait(target_states=[jpsi.JobState.ACTIVE])
        return [_RunningJob(it.paths.folder, it.job_id) for it in submitted]

    def _spec(self, job: jpsi.Job) -> jpsi.JobSpec:
        spec = super()._spec(job)
        assert spec.attributes.duration is not None
        spec.attributes.duration += timedelta(minutes=5)
        return spec


@pytest.fixture(autouse=True)
def _modules_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    submitit_plugin._executor.cache_clear()


@pytest.mark.parametrize("name", _OWN_TESTS)
def test_own_tests_of_submitit_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_running = name in {"test_killed", "test_cancel", "test_custom_checkpoint"}
    monkeypatch.setattr(local, "LocalExecutor", _RunningExecutor if needs_running else JpsiExecutor)
    monkeypatch.setattr(local, "LocalJob", JpsiJob)
    monkeypatch.setattr(test_local, "AutoExecutor", _AutoExecutor)
    folder = tmp_path / "weird '\"dir" if name == "test_weird_dir" else tmp_path / "folder"
    folder.mkdir()

    getattr(test_local, name)(folder)


def test_own_test_of_several_tasks_passes_up_to_the_local_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "LocalExecutor", JpsiExecutor)

    with pytest.raises(AttributeError, match="_process"):
        test_local.test_local_job(tmp_path)


class _AutoExecutor(submitit.AutoExecutor):  # type: ignore[misc,name-defined]  # submitit may be missing
    """An AutoExecutor that has `jpsi` for `local`."""

    def __init__(self, folder: Path, cluster: str) -> None:
        assert cluster == "local"
        super().__init__(folder, cluster="jpsi")

    def update_parameters(self, **parameters: Any) -> None:
        super().update_parameters(**{k.replace("local_", "jpsi_"): it for k, it in parameters.items()})


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
    executor.update_parameters(timeout_min=60)
    job = executor.submit(calls.Preempted(), slack=True)
    job.job.wait()

    job._submit_next()
    job._submit_next()

    assert len(job._attempts()) == 2
    assert len([*tmp_path.glob("*_jpsi.*")]) == 2
    assert job.result() == "worked hard"


def test_a_job_is_continued_by_one_program_at_a_time(tmp_path: Path) -> None:
    executor = JpsiExecutor(tmp_path)
    executor.update_parameters(timeout_min=60)
    job = executor.submit(calls.Preempted(), slack=True)
    job.job.wait()
    lock = Path(os.environ["XDG_STATE_HOME"]) / "jpsi/work/functions/submitit.lock"

    lock.parent.mkdir(parents=True, mode=0o700)
    with locks.hold_lock(lock):
        assert not job.done()
        assert len(job._attempts()) == 1
    assert job.result() == "worked hard"


# A program that continues a job after its checkpoint, and is killed at a step of that.
_KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from jpsi_functions import submitit_plugin

job = submitit_plugin.JpsiJob({folder!r}, {job!r})
write = submitit_plugin._write_attempt

def killed_after_the_attempt(*arguments):
    write(*arguments)
    if {step!r} == "attempt":
        os.kill(os.getpid(), signal.SIGKILL)
    # from now on: the thread that follows jobs may query before
    sys.addaudithook(killed_at_a_process)

def killed_at_a_process(event, _):
    if {step!r} == event:
        os.kill(os.getpid(), signal.SIGKILL)

job.job.wait()
submitit_plugin._write_attempt = killed_after_the_attempt
job._submit_next()
"""


@pytest.mark.parametrize("step", ["attempt", "subprocess.Popen"])
def test_a_continuation_of_a_killed_program_is_submitted_by_the_next(
    step: str, tmp_path: Path, slurm: None
) -> None:
    executor = JpsiExecutor(tmp_path, executor="slurm")
    executor.update_parameters(timeout_min=60)
    job = executor.submit(calls.Preempted(), slack=True)
    script = _KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path), job=job.job_id, step=step)

    killed = subprocess.run([sys.executable, "-c", script], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert len(job._attempts()) == 2
    assert JpsiJob(tmp_path, job.job_id).result() == "worked hard"
    assert len(job._attempts()) == 2


def test_a_job_whose_program_was_killed_before_it_submitted_says_so(tmp_path: Path) -> None:
    job = jpsi.Job()
    submitit_plugin._write_attempt(JobPaths(tmp_path, job.id), 1, "local", "", job)

    with pytest.raises(jpsi.SubmitException, match="killed before it submitted the job"):
        JpsiJob(tmp_path, job.id).result()


def test_a_job_that_timed_out_too_often_is_not_continued(tmp_path: Path) -> None:
    executor = JpsiExecutor(tmp_path, max_num_timeout=0)
    # of a walltime of ten minutes submitit takes each signal for the end
    executor.update_parameters(timeout_min=10, signal_delay_s=600)

    job = executor.submit(calls.Slacker(), slack=True)

    with pytest.raises(FailedJobError, match="timed-out too many times"):
        job.result()


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
