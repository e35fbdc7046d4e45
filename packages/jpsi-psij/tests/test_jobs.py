"""The cases of psij-python's own tests of jobs, on this machine and on a fake Slurm."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
import psij
from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, ResourceSpecV1
from psij.staging import StageIn, StageOut, StageOutFlags

SECONDS = timedelta(seconds=60)


@pytest.fixture(params=["local", "slurm"])
def executor(request: pytest.FixtureRequest) -> JobExecutor:
    if request.param == "slurm":
        request.getfixturevalue("slurm")
    return JobExecutor.get_instance(request.param)


def run(executor: JobExecutor, spec: JobSpec) -> JobStatus:
    job = Job(spec)
    executor.submit(job)
    status = job.wait(SECONDS)
    assert status is not None
    return status


def test_output_and_error_go_to_their_files(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", "printf out; printf err >&2"])
    spec.stdout_path, spec.stderr_path = tmp_path / "out", str(tmp_path / "err")

    assert run(executor, spec).state is JobState.COMPLETED
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == ("out", "err")


def test_input_comes_from_its_file(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("text")

    spec = JobSpec("/bin/cat", stdin_path=tmp_path / "in", stdout_path=tmp_path / "out")

    assert run(executor, spec).exit_code == 0
    assert (tmp_path / "out").read_text() == "text"


def test_a_failing_job_has_its_exit_code(executor: JobExecutor) -> None:
    status = run(executor, JobSpec("/bin/sh", ["-c", "exit 3"]))

    assert (status.state, status.exit_code, status.metadata) == (JobState.FAILED, 3, None)
    assert isinstance(status.time, float)


def test_a_missing_executable_fails(executor: JobExecutor) -> None:
    assert run(executor, JobSpec("/bin/no_such_file")).state is JobState.FAILED


def test_numbers_in_the_environment_become_text(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", "printf %s $A$B"], stdout_path=tmp_path / "out")
    spec.environment = {"A": "_y_", "B": 1}

    assert run(executor, spec).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "_y_1"


def test_references_to_variables_are_plain_text(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", 'echo "$1" "$A"', "sh", "${HOME}"], environment={"A": "${HOME}"})
    spec.stdout_path = tmp_path / "out"

    assert run(executor, spec).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "${HOME} ${HOME}\n"


def test_a_cancelled_job_is_canceled(executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/sleep", ["60"]))
    executor.submit(job)
    active = job.wait(SECONDS, [JobState.ACTIVE])

    job.cancel()

    assert active is not None
    assert active.state is JobState.ACTIVE
    assert (status := job.wait(SECONDS)) is not None
    assert status.state is JobState.CANCELED


def test_an_attached_job_ends_as_the_first_one(executor: JobExecutor, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first, second = Job(JobSpec("/bin/sh", ["-c", f"until [ -e {gate} ]; do sleep 0.05; done"])), Job()
    executor.submit(first)
    assert first.native_id is not None
    assert first.native_id in executor.list()

    executor.attach(second, first.native_id)
    third = Job()
    JobExecutor.get_instance(executor.name).attach(third, first.native_id)
    gate.touch()

    for job in (first, second, third):
        assert (status := job.wait(SECONDS)) is not None
        assert status.state is JobState.COMPLETED


def test_jobs_of_one_spec_run_at_once(executor: JobExecutor, tmp_path: Path) -> None:
    """Each of them ends only after the other has started."""
    script = f"echo x >>{tmp_path}/out; until [ $(wc -l <{tmp_path}/out) -eq 2 ]; do sleep 0.05; done"
    jobs = [Job(spec := JobSpec("/bin/sh", ["-c", script])), Job(spec)]

    for job in jobs:
        executor.submit(job)

    for job in jobs:
        assert (status := job.wait(SECONDS)) is not None
        assert status.state is JobState.COMPLETED


def test_callbacks_get_each_status_once(executor: JobExecutor) -> None:
    of_job: list[JobState] = []
    of_executor: list[JobState] = []

    class Recorder(psij.JobStatusCallback):
        def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
            assert job_status.state is job.status.state
            of_executor.append(job_status.state)

    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(lambda _, status: of_job.append(status.state))
    executor.set_job_status_callback(Recorder())
    executor.submit(job)
    job.wait(SECONDS)

    assert of_job == of_executor == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


def test_a_callback_may_wait_for_its_own_job_and_submit_others() -> None:
    executor = JobExecutor.get_instance("local")
    others: list[Job] = []

    def follow(job: Job, status: JobStatus) -> None:
        if status.final and job.wait(SECONDS) is not None:
            others.append(Job(JobSpec("/bin/true")))
            executor.submit(others[0])

    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(follow)
    executor.submit(job)
    job.wait(SECONDS)

    assert others[0].wait(SECONDS) is not None


def test_a_callback_that_raises_keeps_no_other_from_being_called(caplog: pytest.LogCaptureFixture) -> None:
    executor = JobExecutor.get_instance("local")
    seen: list[JobState] = []
    executor.set_job_status_callback(lambda _, status: seen.append(status.state))
    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(lambda *_: 1 / 0)

    executor.submit(job)

    assert job.wait(SECONDS) is not None
    assert seen[-1] is JobState.COMPLETED
    assert "ZeroDivisionError" in caplog.text


def test_several_processes_run_and_have_a_file_of_nodes(executor: JobExecutor, tmp_path: Path) -> None:
    script = f'test "$(wc -l <"$PSIJ_NODEFILE")" -eq 4 && echo x >>{tmp_path}/out'
    resources = ResourceSpecV1(process_count=4)

    once = JobSpec("/bin/sh", ["-c", script], resources=resources)
    assert run(executor, once).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "x\n"

    each = JobSpec("/bin/sh", ["-c", script], resources=resources, launcher="multiple")
    assert run(executor, each).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "x\n" * 5


@pytest.mark.parametrize(("launcher", "count"), [("single", 1), ("multiple", 4)])
def test_two_nodes_are_no_problem_for_a_launcher_of_one(
    executor: JobExecutor, tmp_path: Path, launcher: str, count: int
) -> None:
    resources = ResourceSpecV1(node_count=2, processes_per_node=2)
    spec = JobSpec("/bin/sh", ["-c", f"echo x >>{tmp_path}/out"], resources=resources, launcher=launcher)

    assert run(executor, spec).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "x\n" * count


def test_bash_functions_of_pre_launch_reach_the_job(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("#!/bin/bash\nhello() { echo $WORD; }\nexport WORD=hi\nexport -f hello\n")
    spec = JobSpec("/bin/bash", ["-c", "hello"], pre_launch=tmp_path / "pre", stdout_path=tmp_path / "out")

    assert run(executor, spec).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "hi\n"


def test_staging_passes_through_its_states(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("text")
    seen: list[JobState] = []
    spec = JobSpec("/bin/cp", ["in", "out"], tmp_path / "run")
    spec.directory.mkdir()  # type: ignore[union-attr]
    spec.stage_in = {StageIn(tmp_path / "source", "in")}
    spec.stage_out = {StageOut("out", tmp_path / "target")}
    spec.cleanup = {"out"}
    job = Job(spec)
    job.set_job_status_callback(lambda _, status: seen.append(status.state))

    executor.submit(job)

    assert job.wait(SECONDS) is not None
    assert (tmp_path / "target").read_text() == "text"
    assert [str(it) for it in seen] == ["QUEUED", "STAGE_IN", "ACTIVE", "STAGE_OUT", "CLEANUP", "COMPLETED"]
    assert (staged := job.wait(target_states=JobState.STAGE_IN)) is not None
    assert staged.state is JobState.STAGE_IN


@pytest.mark.parametrize("code", [0, 1])
def test_flags_say_when_files_are_staged_out_and_cleaned_up(
    executor: JobExecutor, tmp_path: Path, code: int
) -> None:
    flags = {"always": StageOutFlags.IF_PRESENT, "missing": StageOutFlags.IF_PRESENT}
    flags |= {"success": StageOutFlags.ON_SUCCESS, "error": StageOutFlags.ON_ERROR}
    spec = JobSpec("/bin/sh", ["-c", f"touch always success error; exit {code}"], tmp_path)
    spec.stage_out = {StageOut(name, tmp_path / f"{name}.out", flag) for name, flag in flags.items()}
    spec.cleanup, spec.cleanup_flags = {Path("always")}, StageOutFlags.ON_SUCCESS

    assert run(executor, spec).exit_code == code

    expected = {"always.out", "success", "error"} | ({"error.out", "always"} if code else {"success.out"})
    assert {it.name for it in tmp_path.glob("*[srs]")} | {
        it.name for it in tmp_path.glob("*.out")
    } == expected


def test_memory_is_requested(executor: JobExecutor) -> None:
    resources = ResourceSpecV1(memory=100 * 2**20)

    assert run(executor, JobSpec("/bin/true", resources=resources)).state is JobState.COMPLETED


def test_a_queue_and_an_account_are_passed_on(slurm: None, tmp_path: Path) -> None:
    attributes = JobAttributes(queue_name="main", account="proj1")
    spec = JobSpec("/bin/sh", ["-c", "echo $SLURM_JOB_PARTITION $SLURM_JOB_ACCOUNT"], attributes=attributes)
    spec.stdout_path = tmp_path / "out"

    assert run(JobExecutor.get_instance("slurm"), spec).state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "main proj1\n"


def test_each_process_of_a_launcher_has_its_rank(slurm: None, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", "echo $SLURM_PROCID"], stdout_path=tmp_path / "out", launcher="srun")
    spec.resources = ResourceSpecV1(node_count=2, processes_per_node=2)

    assert run(JobExecutor.get_instance("slurm"), spec).state is JobState.COMPLETED
    assert sorted((tmp_path / "out").read_text().split()) == ["0", "1", "2", "3"]


def test_a_fractional_duration_is_accepted(executor: JobExecutor) -> None:
    attributes = JobAttributes(timedelta(seconds=3700.5))

    assert run(executor, JobSpec("/bin/true", attributes=attributes)).state is JobState.COMPLETED


def test_wait_gives_up_after_its_timeout() -> None:
    assert Job(JobSpec("/bin/true")).wait(timedelta(milliseconds=1)) is None


def test_a_job_is_submitted_once() -> None:
    executor = JobExecutor.get_instance("local")
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)

    with pytest.raises(psij.InvalidJobException, match="was submitted already"):
        executor.submit(job)


def test_an_error_has_its_message() -> None:
    job = Job(JobSpec())

    with pytest.raises(psij.InvalidJobException) as caught:
        JobExecutor.get_instance("local").submit(job)

    assert "executable is missing" in caught.value.message
    assert job.status.state is JobState.NEW
    with pytest.raises(psij.SubmitException, match="was not submitted"):
        job.cancel()


def test_nothing_is_printed(executor: JobExecutor, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(executor, JobSpec("/bin/true")).state is JobState.COMPLETED
    assert capfd.readouterr().out == ""


def test_processes_that_fork_can_submit() -> None:
    code = """
import multiprocessing, psij
def work():
    job = psij.Job(psij.JobSpec("/bin/true"))
    psij.JobExecutor.get_instance("local").submit(job)
    assert job.wait().exit_code == 0
work()
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
raise SystemExit(process.exitcode)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_threads_can_submit() -> None:
    job = Job(JobSpec("/bin/true"))
    thread = threading.Thread(target=lambda: JobExecutor.get_instance("local").submit(job))

    thread.start()
    thread.join()

    assert (status := job.wait(SECONDS)) is not None
    assert status.state is JobState.COMPLETED


def test_a_job_whose_submission_failed_is_submitted_again_as_the_same_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[jpsi.Job, str | None]] = []

    def fail(_: jpsi.JobExecutor, job: jpsi.Job, native_id: str = "") -> None:
        if not native_id:
            seen.append((job, None if job.spec is None else job.spec.name))
        msg = "the outcome is unclear"
        raise psij.SubmitException(msg)

    for method in ("submit", "attach"):
        monkeypatch.setattr(jpsi.JobExecutor, method, fail)
    executor, job = JobExecutor.get_instance("local"), Job(JobSpec("/bin/true", name="a"))

    for name in ("a", "b"):
        job.spec = JobSpec("/bin/true", name=name)
        with pytest.raises(psij.SubmitException, match="unclear"):
            executor.submit(job)
        assert job.executor is None
    with pytest.raises(psij.SubmitException, match="unclear"):
        executor.attach(job, "1.2.3")
    with pytest.raises(psij.SubmitException, match="unclear"):
        executor.submit(job)

    assert len({inner.id for inner, _ in seen}) == 1
    assert [name for _, name in seen] == ["a", "b", "b"]


def test_a_job_that_is_being_submitted_is_not_submitted_by_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor, job, errors = JobExecutor.get_instance("local"), Job(JobSpec("/bin/true")), list[Exception]()
    submit = jpsi.JobExecutor.submit

    def submit_again(inner_executor: jpsi.JobExecutor, inner: jpsi.Job) -> None:
        monkeypatch.setattr(jpsi.JobExecutor, "submit", submit)
        try:
            executor.submit(job)
        except psij.InvalidJobException as e:
            errors.append(e)
        submit(inner_executor, inner)

    monkeypatch.setattr(jpsi.JobExecutor, "submit", submit_again)
    executor.submit(job)

    assert [type(it) for it in errors] == [psij.InvalidJobException]
    assert job.wait(SECONDS) is not None


def test_a_callback_may_cancel_its_job_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, job = JobExecutor.get_instance("local"), Job(JobSpec("/bin/sleep", ["60"]))
    called, seen, submit = threading.Event(), list[object](), jpsi.JobExecutor.submit

    def cancel(job: Job, status: JobStatus) -> None:
        if status.state is JobState.QUEUED:
            seen.append(job.executor)
            try:
                job.cancel()
            finally:
                called.set()

    def submit_and_wait(inner_executor: jpsi.JobExecutor, inner: jpsi.Job) -> None:
        submit(inner_executor, inner)
        assert called.wait(60)

    monkeypatch.setattr(jpsi.JobExecutor, "submit", submit_and_wait)
    job.set_job_status_callback(cancel)
    executor.submit(job)

    status = job.wait(SECONDS if seen == [executor] else timedelta(0))
    assert seen == [executor]
    assert status is not None
    assert status.state is JobState.CANCELED


def test_a_callback_that_exits_keeps_no_wait_from_returning() -> None:
    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(lambda *_: sys.exit(1))

    JobExecutor.get_instance("local").submit(job)

    assert job.wait(timedelta(seconds=20)) is not None


def test_own_jobs_are_held_released_and_cancelled_by_jpsi(
    monkeypatch: pytest.MonkeyPatch, slurm: None
) -> None:
    executor, other = JobExecutor.get_instance("slurm"), JobExecutor.get_instance("slurm")
    job, seen = Job(JobSpec("/bin/sleep", ["60"])), list[tuple[object, ...]]()
    executor.submit(job)
    for action in ("hold", "release"):
        monkeypatch.setattr(jpsi.JobExecutor, action, lambda *them: seen.append(them))

    executor.hold(job)
    executor.release(job)
    other.cancel(job)

    assert seen == [(executor._executor, job._jpsi_job)] * 2
    assert (status := job.wait(SECONDS)) is not None
    assert status.state is JobState.CANCELED
