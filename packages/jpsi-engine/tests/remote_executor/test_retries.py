"""Jobs on a remote host are submitted again, once each, by the machine that submitted them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import jpsi_engine.job_store
from jpsi import InvalidJobException, Job, JobAttributes, JobExecutor, JobSpec, JobState, StageIn
from jpsi_engine.spool.spool import Spool
from jpsi_testing import RemoteTransport
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.waiting import eventually
from killed_clients import run_client
from remote_jobs import PATIENCE, end, executor_of, mirror, remote_root
from retried_jobs import COMMAND, failing_job, runs_of

# Submits such jobs, and waits for them. It is killed before its n-th access to its files, or before its n-th
# process.
CLIENT = """
import sys
from datetime import timedelta
import jpsi
from jpsi.plugin import BatchConfig
import jpsi_engine.job_store, jpsi_engine.batch, jpsi_engine.remote.remote_host
from killed_clients import kill_at

url, state, proof, command, step, count = sys.argv[1:]
short, long, grace = (timedelta(seconds=it) for it in (0.1, 0.3, 0.5))
config = BatchConfig(shortest_interval=short, longest_interval=long, grace=grace)
executor = jpsi.JobExecutor.get_instance("toy", url=url, config=config)
left = kill_at(int(step), state)
attributes = jpsi.JobAttributes(retry={75: 4})
specs = [["-c", command, "sh", f"{proof}{number}", "3"] for number in range(int(count))]
jobs = [jpsi.Job(jpsi.JobSpec("/bin/sh", it, attributes=attributes)) for it in specs]
executor.submit_many(jobs)
for job in jobs:
    job.wait()
print(left())
sys.exit(any(job.status.state is not jpsi.JobState.COMPLETED for job in jobs))
"""


def test_a_job_is_submitted_again_until_it_succeeds(
    executor: JobExecutor, remote_transport: RemoteTransport
) -> None:
    proof = remote_transport.home / "proof"
    job = failing_job(proof, 3)
    states = list[JobState]()
    job.set_job_status_callback(lambda _, status: states.append(status.state))
    executor.submit(job)

    status = end(job)

    assert (status.state, status.metadata["attempt"]) == (JobState.COMPLETED, 3)
    assert runs_of(proof) == 3
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    # the runners of these attempts would do nothing if the batch system started them again
    folder = remote_root(remote_transport) / "jobs" / job.id
    assert {it.name for it in folder.glob("final.*")} == {"final.1.json", "final.2.json"}


def test_those_of_an_array_that_fail_are_submitted_again(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler
) -> None:
    proofs = [remote_transport.home / f"proof{runs}" for runs in (1, 2, 3)]
    jobs = [failing_job(proof, runs) for runs, proof in enumerate(proofs, 1)]

    executor.submit_many(jobs)

    assert scheduler.log.count("tsubmit") == 1
    assert [end(job).metadata.get("attempt", 1) for job in jobs] == [1, 2, 3]
    assert [runs_of(proof) for proof in proofs] == [1, 2, 3]


def test_no_attempt_is_made_while_the_end_of_the_last_is_not_on_the_remote_host(
    executor: JobExecutor, remote_transport: RemoteTransport, state_home: Path
) -> None:
    proof = remote_transport.home / "proof"
    job = failing_job(proof, 2, delay=0.5)
    executor.submit(job)
    spool = Spool(mirror(state_home))
    remote_transport.cut("final.1.json")
    assert eventually(lambda: spool.pending_retry(job.id) is not None)
    before = len(remote_transport.sent)

    status = end(job)

    assert status.state is JobState.COMPLETED
    assert runs_of(proof) == 2
    sent = [it for it in remote_transport.sent[before:] if "final.1.json" in it and "run.2" not in it]
    assert len(sent) == 2


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
def test_a_connection_that_breaks_at_the_next_attempt_costs_no_attempt(
    executor: JobExecutor, remote_transport: RemoteTransport, state_home: Path, is_sent: bool
) -> None:
    proof = remote_transport.home / "proof"
    job = failing_job(proof, 2, delay=0.5)
    executor.submit(job)
    spool = Spool(mirror(state_home))
    remote_transport.cut("run.2", after=is_sent)

    status = end(job)

    assert status.state is JobState.COMPLETED
    assert runs_of(proof) == 2
    assert spool.attempt_exists(job.id, 2)


def test_a_job_is_cancelled_between_its_attempts(
    executor: JobExecutor, remote_transport: RemoteTransport, state_home: Path
) -> None:
    proof = remote_transport.home / "proof"
    job = failing_job(proof, 2, delay=3600)
    executor.submit(job)
    spool = Spool(mirror(state_home))
    assert eventually(lambda: spool.pending_retry(job.id) is not None)
    job.cancel()

    assert end(job).state is JobState.CANCELED
    assert runs_of(proof) == 1


def test_another_machine_leaves_the_jobs_alone(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    state_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # in the intent of their array, each has attributes of its own
    proofs = [remote_transport.home / f"proof{number}" for number in range(3)]
    jobs = [failing_job(proof, 2, delay=3600 + number) for number, proof in enumerate(proofs)]
    other = Job(JobSpec("/bin/sleep", ["100"]))
    executor.submit(jobs[0])
    executor.submit_many(jobs[1:])
    executor.submit(other)
    spool = Spool(mirror(state_home))
    assert eventually(lambda: all(spool.pending_retry(job.id) is not None for job in jobs))
    assert other.wait(PATIENCE, JobState.ACTIVE)

    with monkeypatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))
        with executor_of(remote_transport) as fresh:
            assert [it.id for it in fresh.recover()] == [other.id]
    for job in (*jobs, other):
        job.cancel()
        assert end(job).state is JobState.CANCELED


def test_jobs_whose_files_are_staged_are_refused(executor: JobExecutor, tmp_path: Path) -> None:
    source = tmp_path / "input"
    source.touch()
    spec = JobSpec("/bin/true", attributes=JobAttributes(retry={75: 1}))
    spec.stage_in = [StageIn(str(source), Path("input"))]

    with pytest.raises(InvalidJobException, match=r"stage_in: with attributes.retry"):
        executor.submit(Job(spec))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("step", [*range(4, 172, 24)])
def test_a_client_killed_at_any_step_leaves_jobs_that_end_as_if_it_lived(
    remote_transport: RemoteTransport, scheduler: FakeScheduler, state_home: Path, step: int, count: int
) -> None:
    proof = remote_transport.home / "proof"
    words = [remote_transport.url, str(state_home), str(proof), COMMAND, str(step), str(count)]
    client = run_client(CLIENT, *words)
    assert client.returncode in {-signal.SIGKILL, 0}

    with executor_of(remote_transport) as executor:
        jobs = executor.recover()
        executor.submit_many([job for job in jobs if job.status.state is JobState.NEW])
        assert [end(job).state for job in jobs] == [JobState.COMPLETED] * len(jobs)
        assert [runs_of(Path(f"{proof}{number}")) for number in range(count)] in ([0] * count, [3] * count)
        assert runs_of(Path(f"{proof}0")) == 3 or not jpsi_engine.job_store.jobs()
        assert executor.recover() == []
