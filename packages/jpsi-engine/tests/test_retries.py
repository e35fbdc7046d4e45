"""A job is submitted again after the ends that its attribute `retry` names, once each, whoever is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi import (
    ExecutorConfig,
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    Reason,
    SubmitException,
)
from jpsi.plugin import BatchConfig
from jpsi_engine import job_store
from jpsi_engine.local.supervision import Supervisor
from jpsi_engine.monitor import JobMonitor
from jpsi_engine.scheduler import RetryLoop
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict import CANCEL, Stop
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, on_path
from jpsi_testing.waiting import eventually
from killed_clients import PATIENCE, run_client
from retried_jobs import COMMAND, failing_job, runs_of
from toys import QUICK, install_toy

# Submits such a job, or recovers it, and waits for it; it is killed before its n-th access to the work
# directory, or its n-th process, if there is an n.
CLIENT = """
import sys
from datetime import timedelta
import jpsi
from jpsi.plugin import BatchConfig
import jpsi_engine.job_store, jpsi_engine.batch, jpsi_engine.local.local_engine
from killed_clients import kill_at

name, work, proof, command, step = sys.argv[1:]
config = jpsi.ExecutorConfig(work_directory=work)
if name != "local":
    short, long, grace = (timedelta(seconds=it) for it in (0.1, 0.3, 0.5))
    config = BatchConfig(work_directory=work, shortest_interval=short, longest_interval=long, grace=grace)
executor = jpsi.JobExecutor(name, config=config)
left = kill_at(int(step), work)
attributes = jpsi.JobAttributes(retry={75: 4})
job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", proof, "3"], attributes=attributes))
executor.submit(job)
job.wait()
print(left())
sys.exit(0 if job.status.state is jpsi.JobState.COMPLETED else 1)
"""

# Submits such a job, and is killed before or after a call of a function while it makes the second attempt. At
# that moment another client, which is killed as well, has cancelled the job.
CANCELLED = """
import sys
from datetime import timedelta
import jpsi
from jpsi.plugin import BatchConfig
import jpsi_engine.batch, jpsi_engine.local.local_engine
from killed_clients import kill_around

name, work, proof, command, module, path, when = sys.argv[1:]
config = jpsi.ExecutorConfig(work_directory=work)
if name != "local":
    short, long, grace = (timedelta(seconds=it) for it in (0.1, 0.3, 0.5))
    config = BatchConfig(work_directory=work, shortest_interval=short, longest_interval=long, grace=grace)
executor = jpsi.JobExecutor(name, config=config)
job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, proof], attributes=jpsi.JobAttributes(retry={75: 4})))
spool = executor._engine._spool
kill_around(
    *(module, path, when),
    counts=lambda: spool.last_retried(job.id, 2) is not None,
    first=lambda: spool.cancel_retry(job.id, 1),
)
executor.submit(job)
job.wait()
"""


@pytest.fixture
def batch(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    install_toy(plugin_directory)
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake(batch: BatchConfig) -> Iterator[FakeScheduler]:
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture(params=["local", "toy"])
def executor(
    request: pytest.FixtureRequest, batch: BatchConfig, fake: FakeScheduler
) -> Iterator[JobExecutor]:
    with make_executor(request.param, batch) as it:
        yield it


def make_executor(name: str, batch: BatchConfig) -> JobExecutor:
    config = ExecutorConfig(work_directory=batch.work_directory) if name == "local" else batch
    return JobExecutor(name, config=config)


def stored_jobs(batch: BatchConfig) -> list[job_store.StoredJob]:
    assert batch.work_directory is not None
    return job_store.jobs(also=[batch.work_directory])


def test_a_job_is_submitted_again_until_it_succeeds(executor: JobExecutor, tmp_path: Path) -> None:
    job = failing_job(tmp_path / "proof", 3)
    states = list[JobState]()
    job.set_job_status_callback(lambda _, status: states.append(status.state))
    executor.submit(job)
    first = job.native_id

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.COMPLETED, 0)
    assert (status.metadata["attempt"], status.metadata["retry_reason"]) == (3, "75")
    assert runs_of(tmp_path / "proof") == 3
    assert job.native_id != first
    began = datetime.fromisoformat(str(status.metadata["attempt_started"]))
    assert job.usage.wall_time == status.time - began
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


def test_a_job_ends_once_its_retries_are_used_up(executor: JobExecutor, tmp_path: Path) -> None:
    job = failing_job(tmp_path / "proof", 9)
    job.spec.attributes.retry = {75: 2, 3: 9}  # type: ignore[union-attr]  # it has a spec
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, 75, Reason.EXIT_CODE)
    assert "submitted again 2 times" in str(status.message)
    assert runs_of(tmp_path / "proof") == 3


def test_another_end_than_those_named_is_final(executor: JobExecutor, tmp_path: Path) -> None:
    job = Job(JobSpec("/bin/sh", ["-c", "exit 3"], attributes=JobAttributes(retry={75: 2, "timeout": 1})))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert executor.recover() == []


def test_wrong_entries_are_named_together(executor: JobExecutor) -> None:
    wrong = {"oom": 1, "timeout": "twice", 300: 1, "grow_memory": 1, "delay": -1}
    job = Job(JobSpec("/bin/true", attributes=JobAttributes(retry=wrong)))

    with pytest.raises(InvalidJobException) as e:
        executor.submit(job)

    for words in (
        "oom is none of",
        "timeout must be how often",
        "300 is none",
        "grow_memory must be a factor",
    ):
        assert words in str(e.value)
    assert "grow_memory needs a first request, resources.memory" in str(e.value)
    assert "delay must be a number" in str(e.value)


def test_jobs_of_one_submission_are_tried_again_each_for_itself(
    executor: JobExecutor, tmp_path: Path
) -> None:
    jobs = [failing_job(tmp_path / str(runs), runs) for runs in (1, 2, 3)]
    executor.submit_many(jobs)

    statuses = [job.wait(PATIENCE) for job in jobs]

    assert [it and it.state for it in statuses] == [JobState.COMPLETED] * 3
    assert [runs_of(tmp_path / str(runs)) for runs in (1, 2, 3)] == [1, 2, 3]


def test_an_array_with_a_limit_is_not_tried_again(batch: BatchConfig, fake: FakeScheduler) -> None:
    attributes = JobAttributes(retry={75: 1}, custom_attributes={"jpsi.at_a_time": 2})
    with make_executor("toy", batch) as executor, pytest.raises(InvalidJobException, match="the limit"):
        executor.submit(Job(JobSpec("/bin/true", attributes=attributes)))


def test_a_cancelled_job_is_not_submitted_again(executor: JobExecutor, tmp_path: Path) -> None:
    attributes = JobAttributes(retry={143: 5, 137: 5, "timeout": 5, "lost": 5})
    job = Job(
        JobSpec(
            "/bin/sh", ["-c", 'echo ran >>"$0"; sleep 600', str(tmp_path / "proof")], attributes=attributes
        )
    )
    executor.submit(job)
    assert eventually(lambda: runs_of(tmp_path / "proof") == 1)
    job.cancel()

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED
    assert runs_of(tmp_path / "proof") == 1


def test_a_job_that_fails_by_itself_when_it_is_cancelled_says_why_no_attempt_follows(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    command = 'trap "" TERM INT; echo ran >>"$0"; until test -e "$0.stop"; do sleep 0.02; done; exit 75'
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=JobAttributes(retry={75: 5})))
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        assert eventually(lambda: runs_of(proof) == 1)
        root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
        # as by a client that was killed before it asked for the end
        Spool(root).stop(job.id, 1, Stop(CANCEL, datetime.now(UTC)))
        proof.with_name("proof.stop").touch()

        status = job.wait(PATIENCE)

    assert status is not None
    assert runs_of(proof) == 1
    assert (status.state, status.exit_code) == (JobState.FAILED, 75)
    assert "it is not submitted again, as it was cancelled" in str(status.message)


def test_a_job_that_waits_for_its_next_attempt_is_cancelled(
    executor: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=3600)
    executor.submit(job)
    root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
    assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
    (stored,) = stored_jobs(batch)
    assert stored.status.state is JobState.ACTIVE
    assert "attempt 2 follows" in str(stored.remark)
    job.cancel()

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED
    assert runs_of(tmp_path / "proof") == 1
    (stored,) = stored_jobs(batch)
    assert stored.status.state is JobState.CANCELED


def test_recover_leaves_a_job_of_its_own_process_alone_between_attempts(
    batch: BatchConfig, tmp_path: Path
) -> None:
    with make_executor("local", batch) as executor:
        job = failing_job(tmp_path / "proof", 2, delay=3600)
        executor.submit(job)
        engine = executor._engine
        loop, supervisor = engine._retry_loop, engine._supervisor  # type: ignore[attr-defined]  # of local
        assert eventually(lambda: job.id in loop and supervisor.get(job.id) is None)

        assert executor.recover() == []

        assert supervisor.get(job.id) is None
        job.cancel()
        assert job.wait(PATIENCE) is not None


def test_an_attempt_that_is_made_during_its_recovery_is_followed_as_it_was_made(
    batch: BatchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_executor("local", batch) as executor, make_executor("local", batch) as other:
        job = Job(JobSpec("/bin/sleep", ["100"]))
        executor.submit(job)
        engine: Any = other._engine
        supervise, made = engine._supervise, list[Any]()

        def make(*arguments: object) -> object:
            made.append(supervise(*arguments))
            # by another thread
            engine._supervisor.add(made[0])
            return supervise(*arguments)

        monkeypatch.setattr(engine, "_supervise", make)
        engine.recall([job.id])

        assert engine._supervisor.get(job.id) is made[0]
        job.cancel()
        assert job.wait(PATIENCE) is not None


def test_another_client_cancels_a_job_between_its_attempts(
    executor: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=3600)
    executor.submit(job)
    root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
    assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
    with make_executor(executor.name, batch) as other:
        (found,) = other.recover()
        found.cancel()
        status = found.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED
    assert runs_of(tmp_path / "proof") == 1


def test_a_cancel_that_finds_the_next_attempt_begun_ends_it(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, go = tmp_path / "proof", tmp_path / "go"
    command = """
        echo ran >>"$0"
        test "$(wc -l <"$0")" = 1 || exec sleep 100
        until test -e "$1"; do sleep 0.05; done
        exit 75
    """
    attributes = JobAttributes(retry={75: 1})
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof), str(go)], attributes=attributes))
    # they record the request, for the attempt that the caller has found
    owner: Any = Supervisor if executor.name == "local" else JobMonitor
    name = "stop" if executor.name == "local" else "record_stop"
    record = getattr(owner, name)

    def record_late(*arguments: object) -> None:
        go.touch()
        assert eventually(lambda: runs_of(proof) == 2)
        record(*arguments)

    executor.submit(job)
    assert eventually(lambda: runs_of(proof) == 1)
    monkeypatch.setattr(owner, name, record_late)
    job.cancel()

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED


def test_a_cancel_between_attempts_ends_the_attempt_that_begins_meanwhile(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, may_begin = tmp_path / "proof", threading.Event()
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 1 || exec sleep 100; exit 75'
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=JobAttributes(retry={75: 1})))
    loop = executor._engine._retry_loop  # type: ignore[attr-defined]  # both engines have it
    loop.find_gone = lambda intents: {it.job_id for it in intents if may_begin.is_set()}
    cancel = RetryLoop.cancel

    def cancel_late(self: RetryLoop, job_id: str) -> bool:
        may_begin.set()
        assert eventually(lambda: job_id not in loop and runs_of(proof) == 2)
        return cancel(self, job_id)

    executor.submit(job)
    assert eventually(lambda: job.id in loop)
    monkeypatch.setattr(RetryLoop, "cancel", cancel_late)
    job.cancel()

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED


@pytest.mark.parametrize(
    ("owner", "name", "when"),
    [
        (RetryLoop, "_next_spec", "after"),
        (Spool, "reserve", "before"),
        (Spool, "reserve", "after"),
        (Spool, "started", "before"),
        (Spool, "started", "after"),
        (RetryLoop, "_track", "before"),
        (RetryLoop, "_track", "after"),
    ],
)
def test_a_client_that_makes_an_attempt_ends_the_job_that_another_client_cancels_meanwhile(
    executor: JobExecutor,
    batch: BatchConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    when: str,
) -> None:
    proof, is_there, may_go_on = tmp_path / "proof", threading.Event(), threading.Event()
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 1 || exec sleep 100; exit 75'
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=JobAttributes(retry={75: 4})))
    engine: Any = executor._engine
    find_gone, may_begin = engine._retry_loop.find_gone, threading.Event()
    engine._retry_loop.find_gone = lambda intents: find_gone(intents) if may_begin.is_set() else ()
    executor.submit(job)
    root = Path(engine._spool.root)
    assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
    with make_executor(executor.name, batch) as other:
        other._engine._retry_loop.find_gone = lambda _: ()  # type: ignore[attr-defined]  # both engines have it
        (found,) = other.recover()
        assert eventually(lambda: job.id in other._engine._retry_loop)  # type: ignore[attr-defined]
        call: Any = vars(owner)[name]
        call = call.__func__ if isinstance(call, staticmethod) else call

        def slow(*arguments: Any, **named: Any) -> object:
            # one call of the first client, in the thread that makes the attempt
            is_it = not is_there.is_set() and threading.current_thread().name == "jpsi-retries"
            result = call(*arguments, **named) if when == "after" or not is_it else None
            if is_it:
                is_there.set()
                assert may_go_on.wait(PATIENCE)
                result = result if when == "after" else call(*arguments, **named)
            return result

        is_static = isinstance(vars(owner)[name], staticmethod)
        monkeypatch.setattr(owner, name, staticmethod(slow) if is_static else slow)
        may_begin.set()
        assert is_there.wait(PATIENCE)
        found.cancel()
        may_go_on.set()

        statuses = [it.wait(PATIENCE) for it in (job, found)]

    assert [it and it.state for it in statuses] == [JobState.CANCELED] * 2
    assert runs_of(proof) <= 2
    (stored,) = stored_jobs(batch)
    assert stored.status.state is JobState.CANCELED


@pytest.mark.parametrize(
    ("name", "module", "path", "when"),
    [
        ("local", "jpsi_engine.spool.spool", "Spool.reserve", "after"),
        ("local", "jpsi_engine.spool.spool", "Spool.started", "before"),
        ("local", "jpsi_engine.scheduler.retry_loop", "RetryLoop._track", "before"),
        ("toy", "jpsi_engine.spool.spool", "Spool.reserve", "after"),
        ("toy", "jpsi_engine.spool.spool", "Spool.sync", "after"),
        ("toy", "jpsi_engine.scheduler.backend", "Backend.submit", "after"),
        ("toy", "jpsi_engine.scheduler.retry_loop", "RetryLoop._track", "before"),
    ],
)
def test_a_job_that_was_cancelled_while_an_attempt_was_made_ends_though_both_clients_are_killed(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, name: str, module: str, path: str, when: str
) -> None:
    proof = tmp_path / "proof"
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 1 || exec sleep 100; exit 75'
    words = [name, str(batch.work_directory), str(proof), command, module, path, when]
    client = run_client(CANCELLED, *words)
    assert client.returncode == -signal.SIGKILL

    with make_executor(name, batch) as executor:
        (job,) = executor.recover()
        status = job.wait(PATIENCE)

        assert status is not None
        assert status.state is JobState.CANCELED
        assert runs_of(proof) <= 2
        (stored,) = stored_jobs(batch)
        assert stored.status.state is JobState.CANCELED
        assert executor.recover() == []


@pytest.mark.parametrize("name", ["local", "toy"])
@pytest.mark.parametrize("step", [*range(3, 100, 12)])
def test_a_client_killed_at_any_step_leaves_a_job_that_ends_as_if_it_lived(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, name: str, step: int
) -> None:
    proof = tmp_path / "proof"
    words = [name, str(batch.work_directory), str(proof), COMMAND, str(step)]
    client = run_client(CLIENT, *words)
    assert client.returncode in {-signal.SIGKILL, 0}

    with make_executor(name, batch) as executor:
        for job in executor.recover():
            if job.status.state is JobState.NEW:
                executor.submit(job)
            status = job.wait(PATIENCE)
            assert status is not None
            assert status.state is JobState.COMPLETED
        assert runs_of(proof) in {0, 3}
        assert runs_of(proof) == 3 or not stored_jobs(batch)
        assert executor.recover() == []


def test_clients_that_follow_one_job_make_each_attempt_once(
    executor: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 4, delay=0.2)
    executor.submit(job)
    others = [make_executor(executor.name, batch) for _ in range(3)]
    jobs = [found for other in others for found in other.recover()]
    assert len(jobs) == 3

    statuses = [it.wait(PATIENCE) for it in (job, *jobs)]

    assert [it and it.state for it in statuses] == [JobState.COMPLETED] * 4
    assert runs_of(tmp_path / "proof") == 4


@pytest.mark.parametrize(
    ("fault", "is_repeated"),
    [
        ({"returncode": 2, "stderr": "tsubmit: no such queue\n"}, False),
        ({"returncode": 3, "stderr": "tsubmit: cannot contact the toy server\n"}, True),
        # no clear answer, and the batch system has nothing
        ({"returncode": 1, "stderr": "?\n"}, True),
    ],
    ids=["refused", "outage", "unclear"],
)
def test_a_refused_attempt_ends_the_job_and_a_failed_one_is_repeated(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, fault: dict[str, Any], is_repeated: bool
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=1)
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
        assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
        fake.faults.fail("tsubmit", **fault)

        status = job.wait(PATIENCE)

        assert status is not None
        if is_repeated:
            assert status.state is JobState.COMPLETED
        else:
            assert (status.state, status.exit_code) == (JobState.FAILED, 75)
            assert "could not be submitted again" in str(status.message)
            assert "no such queue" in str(status.message)
        assert runs_of(tmp_path / "proof") == 1 + is_repeated
        (stored,) = stored_jobs(batch)
        assert (stored.status.state, stored.status.message) == (status.state, status.message)
        assert executor.recover() == []
        assert make_executor("toy", batch).recover() == []


def test_a_job_recalled_after_it_was_refused_has_the_same_end(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=1)
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
        assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
        fake.faults.fail("tsubmit", returncode=2, stderr="tsubmit: no such queue\n")
        status = job.wait(PATIENCE)
    with make_executor("toy", batch) as other:
        (recalled,) = other.recall([job.id])

        again = recalled.wait(PATIENCE)

    assert status is not None
    assert again is not None
    assert (again.state, again.message) == (status.state, status.message)


def test_a_queue_that_jpsi_chose_is_chosen_anew(batch: BatchConfig) -> None:
    chosen, named = (
        JobSpec("x", attributes=JobAttributes(queue_name="debug", custom_attributes=custom))
        for custom in ({"jpsi.queue_reason": "it fits", "toy.a": 1}, {"toy.a": 1})
    )
    with make_executor("toy", batch) as executor:
        for spec in (chosen, named):
            executor._engine._renew(spec)  # type: ignore[attr-defined]  # of batch systems

    assert [it.attributes.queue_name for it in (chosen, named)] == ["auto", "debug"]
    assert chosen.attributes.custom_attributes == {"toy.a": 1}


def test_no_attempt_begins_while_the_batch_system_has_requeued_the_one_before(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    command = 'echo "$TOY_JOB_ID" >>"$0"; test "$(wc -l <"$0")" = 2 || sleep 600'
    attributes = JobAttributes(retry={"node_failure": 1, "delay": 1})
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=attributes))
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        assert eventually(lambda: runs_of(proof) == 1)
        (first,) = fake.jobs
        fake.end_as(first.native_id, FakeState.NODE_FAIL)
        root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
        assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
        # from an old state, as if it had not ended
        fake.restore(first.native_id)

        status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.COMPLETED
    assert proof.read_text().split() == [it.native_id for it in fake.jobs]
    assert len(fake.jobs) == 2


@pytest.mark.parametrize(
    ("state", "reason"),
    [(FakeState.TIMEOUT, "timeout"), (FakeState.NODE_FAIL, "node_failure")],
)
def test_ends_that_only_the_batch_system_knows_are_retried(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, state: FakeState, reason: str
) -> None:
    proof = tmp_path / "proof"
    retry = {reason: 1, **({"grow_duration": 2} if reason == "timeout" else {})}
    attributes = JobAttributes(retry=retry, duration=timedelta(minutes=1))
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 2 || sleep 600'
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=attributes))
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        assert eventually(lambda: runs_of(proof) == 1)
        (first,) = fake.jobs
        fake.end_as(first.native_id, state)

        status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.COMPLETED
    assert (status.metadata["attempt"], status.metadata["retry_reason"]) == (2, reason)
    limits = [it.time_limit for it in fake.jobs]
    assert limits == ([60.0, 120.0] if reason == "timeout" else [60.0, 60.0])


def test_a_job_that_is_lost_while_it_waits_for_another_waits_again(
    batch: BatchConfig, fake: FakeScheduler
) -> None:
    with make_executor("toy", batch) as executor:
        first = Job(JobSpec("/bin/sleep", ["600"]))
        executor.submit(first)
        attributes = JobAttributes(retry={"lost": 1}, after=[str(first.native_id)])
        second = Job(JobSpec("/bin/true", attributes=attributes))
        executor.submit(second)
        lost = str(second.native_id)
        fake.vanish(lost)

        assert eventually(lambda: second.native_id != lost)

        (attempt,) = (it for it in fake.jobs if it.native_id == second.native_id)
        assert attempt.blocked is not None
        assert attempt.blocked()
        second.cancel()
        assert second.wait(PATIENCE)


def test_a_job_recalled_between_two_attempts_has_the_state_that_is_on_disk(
    executor: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=3600)
    executor.submit(job)
    root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
    assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
    with make_executor(executor.name, batch) as other:
        (recalled,) = other.recall([job.id])

        (stored,) = stored_jobs(batch)
        assert recalled.status.state is stored.status.state is JobState.ACTIVE
        assert recalled.status.time == stored.status.time
        recalled.cancel()
        assert recalled.wait(PATIENCE)


def test_a_job_between_two_attempts_is_not_in_the_queue(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    job = failing_job(tmp_path / "proof", 2, delay=3600)
    with make_executor("toy", batch) as executor:
        executor.submit(job)
        root = executor.preview(Job(JobSpec("/bin/true"))).path.parents[2]
        assert eventually(lambda: Spool(root).pending_retry(job.id) is not None)
        assert eventually(lambda: executor.info(job) is None)

        for act in (executor.hold, executor.release):
            with pytest.raises(SubmitException, match="waits for its next attempt") as e:
                act(job)
            assert e.value.transient
        job.cancel()
        assert job.wait(PATIENCE)


def test_a_job_recalled_while_its_second_attempt_waits_stays_active(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proof, gate = tmp_path / "proof", tmp_path / "gate"
    os.mkfifo(gate)
    command = 'echo ran >>"$0"; read -r _ <"$1"; exit 75'
    attributes = JobAttributes(retry={75: 1})
    with make_executor("toy", batch) as executor:
        job = Job(JobSpec("/bin/sh", ["-c", command, str(proof), str(gate)], attributes=attributes))
        executor.submit(job)
        first = job.native_id
        assert eventually(lambda: runs_of(proof) == 1)
        # it takes all slots once the first attempt has ended
        fake.submit(FakeJob("all", script="#!/bin/sh\nexec sleep 600\n", slots=8))
        gate.write_text("\n")
        assert eventually(lambda: job.native_id != first)
        with make_executor("toy", batch) as other:
            (recalled,) = other.recall([job.id])

            assert recalled.status.state is job.status.state is JobState.ACTIVE
        job.cancel()
        assert job.wait(PATIENCE)
