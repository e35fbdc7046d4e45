"""Jobs and callbacks: the guarantees for an application that holds a job."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi_testing.waiting import eventually
from manual_executor import PATIENCE, ManualExecutor


@pytest.mark.clause("job-new", "job-id", "job-native-id")
def test_a_new_job_has_its_own_id() -> None:
    first, second = Job(), Job()

    assert first.id != second.id
    assert first.native_id is None
    assert first.executor is None
    assert first.status.state is JobState.NEW


@pytest.mark.clause("cancel-new")
def test_cancel_before_submission_raises() -> None:
    with pytest.raises(jpsi.SubmitException, match="was not submitted"):
        Job().cancel()


@pytest.mark.parametrize(("timeout", "noted"), [(0.01, [0.01]), (0, []), (None, [])])
def test_a_wait_with_a_timeout_has_the_engine_poll_soon(timeout: float | None, noted: list[float]) -> None:
    job = Job()
    executor = ManualExecutor(job)
    executor.publish(JobState.QUEUED)

    job.wait(JobState.QUEUED, timeout=timeout)

    assert executor.deadlines == noted


def test_a_mistyped_attribute_raises() -> None:
    with pytest.raises(AttributeError, match="excutable"):
        JobSpec().excutable = "x"  # type: ignore[attr-defined]


@pytest.mark.clause("wait-target")
def test_wait_returns_the_status_of_a_state_that_was_passed() -> None:
    job = Job()
    ManualExecutor(job).publish(JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)

    status = job.wait(target_states=[JobState.ACTIVE])

    assert status is not None
    assert status.state is JobState.ACTIVE


@pytest.mark.clause("wait-target")
@pytest.mark.parametrize(
    "arguments",
    [
        (JobState.QUEUED,),
        ([JobState.QUEUED],),
        (None, JobState.QUEUED),
        (1, [JobState.QUEUED]),
        (timedelta(seconds=1), {JobState.QUEUED}),
    ],
)
def test_wait_takes_states_in_any_argument(arguments: tuple[Any, ...]) -> None:
    job = Job()
    ManualExecutor(job).publish(JobState.QUEUED)

    status = job.wait(*arguments)

    assert status is not None
    assert status.state is JobState.QUEUED


@pytest.mark.clause("wait-unreachable")
def test_wait_raises_as_soon_as_no_target_can_be_reached() -> None:
    job = Job()
    ManualExecutor(job).publish(JobState.FAILED)

    with pytest.raises(jpsi.UnreachableStateException, match="cannot become COMPLETED") as caught:
        job.wait(target_states=JobState.COMPLETED)

    assert caught.value.status.state is JobState.FAILED


@pytest.mark.clause("wait-unreachable", "wait-unreachable-soon")
def test_a_running_wait_raises_when_no_target_can_be_reached() -> None:
    job = Job()
    manual = ManualExecutor(job)
    caught: list[JobState] = []

    def wait() -> None:
        try:
            job.wait(JobState.COMPLETED)
        except jpsi.UnreachableStateException as e:
            caught.append(e.status.state)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert eventually(lambda: job._condition is not None), "it waits"
    manual.publish(JobState.QUEUED, JobState.ACTIVE, JobState.FAILED)
    thread.join(PATIENCE)

    assert caught == [JobState.FAILED]


@pytest.mark.clause("wait-unreachable-soon")
def test_wait_for_a_state_that_was_skipped_raises_too() -> None:
    job = Job()
    ManualExecutor(job).publish(JobState.QUEUED, JobState.CANCELED)

    with pytest.raises(jpsi.UnreachableStateException):
        job.wait(JobState.ACTIVE)


@pytest.mark.clause("wait-plain")
def test_plain_wait_never_raises() -> None:
    job = Job()
    ManualExecutor(job).publish(JobState.FAILED)

    status = job.wait()

    assert status is not None
    assert status.state is JobState.FAILED


@pytest.mark.clause("wait-timeout")
@pytest.mark.parametrize("timeout", [0, 0.0, -5, timedelta(0)])
def test_wait_without_time_returns_at_once(timeout: float | timedelta) -> None:
    assert Job().wait(timeout) is None


@pytest.mark.parametrize("nonsense", ["COMPLETED", [], [1], object()])
def test_wait_refuses_arguments_that_are_neither_time_nor_state(nonsense: Any) -> None:
    with pytest.raises(TypeError):
        Job().wait(nonsense)


@pytest.mark.clause("state-final", "status-monotonic", "state-order-kept")
def test_states_never_go_back_and_end_once() -> None:
    job = Job()
    manual = ManualExecutor(job)
    statuses: list[JobState] = []
    job.set_job_status_callback(lambda _, status: statuses.append(status.state))

    manual.publish(JobState.ACTIVE, JobState.QUEUED, JobState.COMPLETED, JobState.FAILED, JobState.ACTIVE)
    job.wait()

    assert statuses == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert job.status.state is JobState.COMPLETED


@pytest.mark.clause("callback-status")
def test_wait_returns_after_the_callback_for_that_status() -> None:
    job = Job()
    manual = ManualExecutor(job)
    may_return = threading.Event()
    returned = threading.Event()

    def callback(_: Job, status: JobStatus) -> None:
        if status.final:
            assert may_return.wait(PATIENCE)
            returned.set()

    job.set_job_status_callback(callback)
    manual.publish(JobState.COMPLETED)

    assert job.status.state is JobState.COMPLETED
    assert job.wait(0) is None
    may_return.set()
    assert job.wait(PATIENCE) is not None
    assert returned.is_set()


def test_a_callback_may_wait_for_its_own_job() -> None:
    job = Job()
    manual = ManualExecutor(job)
    found: list[JobStatus | None] = []
    job.set_job_status_callback(lambda job, status: found.append(job.wait(0)) if status.final else None)

    manual.publish(JobState.FAILED)
    job.wait(PATIENCE)

    assert [status.state for status in found if status] == [JobState.FAILED]


class Recorder:
    """A callback object that records its calls."""

    def __init__(self) -> None:
        self.states: list[JobState] = []

    def job_status_changed(self, job: Job, status: JobStatus) -> None:
        self.states.append(status.state)


@pytest.mark.clause("job-callback")
def test_an_object_may_be_the_callback(executor: JobExecutor) -> None:
    recorder = Recorder()
    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(recorder)

    executor.submit(job)
    job.wait(PATIENCE)

    assert recorder.states == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


def test_a_callback_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="a status callback"):
        Job().set_job_status_callback("print")  # type: ignore[arg-type]


@pytest.mark.clause("callback-quick")
def test_a_callback_that_blocks_delays_only_its_own_job(executor: JobExecutor) -> None:
    release = threading.Event()
    blocked = [Job(JobSpec("/bin/true")) for _ in range(20)]
    for job in blocked:
        job.set_job_status_callback(lambda *_: release.wait(PATIENCE))
        executor.submit(job)
    statuses: list[JobState] = []
    free = Job(JobSpec("/bin/true"))
    free.set_job_status_callback(lambda _, status: statuses.append(status.state))

    executor.submit(free)
    status = free.wait(PATIENCE)

    assert status is not None
    assert statuses == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert all(job.wait(0) is None for job in blocked)
    release.set()
    assert all(job.wait(PATIENCE) for job in blocked)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_callback_that_raises_breaks_nothing(
    executor: JobExecutor, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    statuses: list[JobState] = []

    def callback(_: Job, status: JobStatus) -> None:
        statuses.append(status.state)
        raise error

    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(callback)
    executor.submit(job)

    assert job.wait(PATIENCE) is not None
    assert statuses == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert "a status callback raised" in caplog.text


def test_a_callback_may_submit_and_wait_for_another_job(executor: JobExecutor) -> None:
    inner: list[JobStatus | None] = []

    def callback(_: Job, status: JobStatus) -> None:
        if status.final:
            second = Job(JobSpec("/bin/true"))
            second.set_job_status_callback(lambda *_: None)
            executor.submit(second)
            inner.append(second.wait(PATIENCE))

    jobs = [Job(JobSpec("/bin/true")) for _ in range(10)]
    for job in jobs:
        job.set_job_status_callback(callback)
        executor.submit(job)

    assert all(job.wait(PATIENCE) for job in jobs)
    assert [status and status.state for status in inner] == [JobState.COMPLETED] * len(jobs)


@pytest.mark.clause("job-callback-none")
def test_a_callback_may_unset_itself(executor: JobExecutor) -> None:
    statuses: list[JobState] = []

    def callback(job: Job, status: JobStatus) -> None:
        statuses.append(status.state)
        job.set_job_status_callback(None)

    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(callback)
    executor.submit(job)

    assert job.wait(PATIENCE) is not None
    assert statuses == [JobState.QUEUED]


@pytest.mark.clause("executor-callback")
def test_the_executors_callback_gets_every_status_one_at_a_time(executor: JobExecutor) -> None:
    busy = threading.Lock()
    statuses: list[tuple[str, JobState]] = []
    all_final = threading.Event()
    jobs = [Job(JobSpec("/bin/true")) for _ in range(20)]

    def callback(job: Job, status: JobStatus) -> None:
        assert busy.acquire(blocking=False)
        statuses.append((job.id, status.state))
        if sum(state.final for _, state in statuses) == len(jobs):
            all_final.set()
        busy.release()

    executor.set_job_status_callback(callback)
    for job in jobs:
        executor.submit(job)

    assert all_final.wait(PATIENCE)
    for job in jobs:
        assert [state for id_, state in statuses if id_ == job.id] == [
            JobState.QUEUED,
            JobState.ACTIVE,
            JobState.COMPLETED,
        ]


def test_wait_returns_after_the_executors_callback_for_that_status(executor: JobExecutor) -> None:
    """Another job's call may hold it up, as the calls are made one by one."""
    release, ended = threading.Event(), list[str]()
    jobs = [Job(JobSpec("/bin/true")) for _ in range(5)]

    def callback(job: Job, status: JobStatus) -> None:
        if status.final:
            release.wait(PATIENCE)
            ended.append(job.id)

    executor.set_job_status_callback(callback)
    for job in jobs:
        executor.submit(job)

    assert eventually(lambda: all(job.status.final for job in jobs))
    assert [job.wait(0) for job in jobs] == [None] * 5
    release.set()
    assert all(job.wait(PATIENCE) for job in jobs)
    assert sorted(ended) == sorted(job.id for job in jobs)


def test_wait_returns_after_a_call_of_the_executor_that_was_made_before_its_callback_was_unset(
    executor: JobExecutor,
) -> None:
    is_called, release = threading.Event(), threading.Event()

    def callback(*_: object) -> None:
        is_called.set()
        release.wait(PATIENCE)

    executor.set_job_status_callback(callback)
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    assert is_called.wait(PATIENCE)
    executor.set_job_status_callback(None)

    assert eventually(lambda: job.status.final)
    assert job.wait(0) is None
    release.set()
    assert job.wait(PATIENCE) is not None


@pytest.mark.clause("executor-callback-none")
def test_an_executor_callback_of_none_gets_no_status(executor: JobExecutor) -> None:
    statuses: list[str] = []
    last_is_called = threading.Event()
    first, last = Job(JobSpec("/bin/true")), Job(JobSpec("/bin/true"))
    executor.set_job_status_callback(lambda job, _: statuses.append(job.id))
    executor.set_job_status_callback(None)

    executor.submit(first)
    assert first.wait(PATIENCE) is not None
    # its calls are made in order: once the last is made, one for the first job has been made, too
    executor.set_job_status_callback(lambda _, status: last_is_called.set() if status.final else None)
    executor.submit(last)

    assert last_is_called.wait(PATIENCE)
    assert statuses == []


@pytest.mark.clause("submit-refused", "job-spec")
@pytest.mark.parametrize(
    ("job", "match"),
    [
        (Job(), "has no spec"),
        (Job(JobSpec()), "executable is missing"),
        (Job(JobSpec(True)), "executable must be text"),  # type: ignore[arg-type]
        (Job("echo"), "must be a JobSpec"),  # type: ignore[arg-type]
    ],
    ids=["no-spec", "no-executable", "type", "text"],
)
def test_an_invalid_job_is_refused_and_unchanged(executor: JobExecutor, job: Job, match: str) -> None:
    with pytest.raises(jpsi.InvalidJobException, match=match):
        executor.submit(job)

    assert job.status.state is JobState.NEW
    assert job.executor is None
    assert job.native_id is None


def test_a_refused_job_can_be_corrected_and_submitted(executor: JobExecutor) -> None:
    job = Job(JobSpec())
    with pytest.raises(jpsi.InvalidJobException):
        executor.submit(job)
    job.spec = JobSpec("/bin/true")

    executor.submit(job)

    assert job.wait(PATIENCE) is not None


@pytest.mark.clause("attach-new")
def test_a_job_is_submitted_once(executor: JobExecutor, config: jpsi.ExecutorConfig) -> None:
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    job.wait(PATIENCE)

    for other in (executor, JobExecutor.get_instance("local", config=config)):
        with pytest.raises(jpsi.InvalidJobException, match="submitted already"):
            other.submit(job)
        with pytest.raises(jpsi.InvalidJobException, match="not NEW"):
            other.attach(job, "1")


def test_one_of_many_threads_that_submit_a_job_succeeds(executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true"))
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def submit() -> None:
        start.wait()
        try:
            executor.submit(job)
            outcomes.append("submitted")
        except jpsi.InvalidJobException:
            outcomes.append("refused")

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["refused"] * 7 + ["submitted"]


@pytest.mark.clause("cancel-new", "job-cancel")
def test_another_executors_job_cannot_be_cancelled(
    executor: JobExecutor, config: jpsi.ExecutorConfig
) -> None:
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)

    with pytest.raises(jpsi.SubmitException, match="not submitted to this executor"):
        JobExecutor.get_instance("local", config=config).cancel(job)


@pytest.mark.clause("spec-identity")
def test_a_spec_may_be_changed_after_submission(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/echo", ["first"], environment={"A": "1"})
    first, second = Job(spec), Job(spec)

    executor.submit(first)
    assert spec.arguments is not None
    spec.arguments[0] = "second"
    executor.submit(second)

    for job, text in ((first, "first\n"), (second, "second\n")):
        assert job.wait(PATIENCE) is not None
        assert job.streams is not None
        assert job.streams.stdout.read_text() == text


@pytest.mark.clause("spec-arguments", "spec-environment-null", "spec-inherit-true")
def test_unset_attributes_are_none_and_the_environment_is_inherited() -> None:
    spec = JobSpec()

    assert spec.inherit_environment is True
    names = (
        "name",
        "executable",
        "arguments",
        "directory",
        "environment",
        "resources",
        "pre_launch",
        "post_launch",
    )
    assert [getattr(spec, name) for name in (*names, "stdin_path", "stdout_path", "stderr_path")] == [
        None
    ] * 11


@pytest.mark.clause("spec-constructor", "spec-identity")
def test_lists_are_kept_by_identity() -> None:
    arguments = ["a"]
    environment: dict[str, str | None] = {}

    spec = JobSpec("x", arguments, environment=environment)

    assert spec.arguments is arguments
    assert spec.environment is environment


def test_a_closed_executor_refuses_jobs_and_follows_its_own(executor: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true"))
    with executor:
        executor.submit(job)

    assert job.wait(PATIENCE) is not None
    with pytest.raises(jpsi.SubmitException, match="was closed"):
        executor.submit(Job(JobSpec("/bin/true")))


@pytest.mark.clause("status-time")
def test_times_are_aware_and_never_decrease(executor: JobExecutor) -> None:
    statuses: list[JobStatus] = []
    job = Job(JobSpec("/bin/true"))
    job.set_job_status_callback(lambda _, status: statuses.append(status))

    executor.submit(job)
    job.wait(PATIENCE)

    times = [status.time for status in statuses]
    assert times == sorted(times)
    assert all(moment.tzinfo is not None for moment in times)
    assert abs(times[-1].timestamp() - time.time()) < PATIENCE
