"""Jobs on a remote host: the local spool mirrors the remote one, and a lost connection costs no job."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

import jpsi
import jpsi_engine.job_store
from jpsi import Job, JobExecutor, JobState
from jpsi.plugin import BytesTransport, Command, FileTransport, Lines, LineTransport, TransportError
from jpsi_engine.host.local_transport import LocalTransport
from jpsi_testing import RemoteTransport
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.conformance.recovery import client
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.waiting import eventually
from remote_jobs import CONFIG, PATIENCE, end, executor_of, mirror, remote_root


def test_the_transport_has_its_own_files(remote_transport: RemoteTransport) -> None:
    assert isinstance(remote_transport, FileTransport)
    assert isinstance(remote_transport, LineTransport)
    assert isinstance(remote_transport, BytesTransport)
    assert not remote_transport.is_local
    assert remote_transport.exchange(Command(["cat"]), b"\xff").stdout == b"\xff"


def test_lines_end_if_the_connection_breaks_while_they_open(
    remote_transport: RemoteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = LocalTransport.open

    def cut(here: LocalTransport, command: Command) -> Lines:
        lines = opened(here, command)
        remote_transport.down()
        return lines

    monkeypatch.setattr(LocalTransport, "open", cut)

    assert not list(remote_transport.open(Command(["sleep", "1000"])))


def test_a_job_and_its_runner_name_no_local_path(
    executor: JobExecutor, remote_transport: RemoteTransport, state_home: Path
) -> None:
    job = Job(shell('pwd; echo "$HOME"; echo err >&2'))
    executor.submit(job)

    assert end(job).exit_code == 0
    root = remote_root(remote_transport)
    assert job.streams is not None
    assert job.streams.stdout == root / "jobs" / job.id / "stdout"
    assert job.streams.stdout.read_text().splitlines()[0] == str(remote_transport.home)
    output = job.output("stderr")
    part = None if output is None else output.read()
    assert part is not None
    assert part.data == b"err\n"
    texts = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert len(texts) > 3
    assert not any(os.fsencode(state_home) in text for text in texts)


def test_paths_in_the_home_directory_mean_the_remote_home(
    executor: JobExecutor, remote_transport: RemoteTransport
) -> None:
    (remote_transport.home / "work").mkdir()
    (remote_transport.home / "pre").write_text("export GREETING=hello\n")
    spec = shell("echo $GREETING; pwd", directory=Path("~/work"), pre_launch=Path("~/pre"))
    spec.stdout_path = Path("~/out")
    job = Job(spec)
    executor.submit(job)

    assert end(job).exit_code == 0
    assert (remote_transport.home / "out").read_text() == f"hello\n{remote_transport.home}/work\n"
    assert job.streams is not None
    assert job.streams.stdout == remote_transport.home / "out"
    assert job.streams.stderr == remote_root(remote_transport) / "jobs" / job.id / "stderr"
    (spooled,) = jpsi_engine.job_store.jobs()
    assert spooled.streams == job.streams


def test_a_missing_directory_fails_the_job_when_it_runs(executor: JobExecutor) -> None:
    job = Job(shell("exit 0", directory=Path("/no/such/directory")))
    executor.submit(job)

    assert end(job).reason is jpsi.Reason.SETUP


def test_the_configured_work_directory_is_remote(remote_transport: RemoteTransport, state_home: Path) -> None:
    with executor_of(remote_transport, attrs.evolve(CONFIG, work_directory=Path("~/kept here"))) as executor:
        job = Job(shell("exit 3"))
        executor.submit(job)
        assert end(job).exit_code == 3

    assert job.streams is not None
    assert job.streams.stdout.is_relative_to(remote_transport.home / "kept here")
    assert (mirror(state_home) / "jobs" / job.id).is_dir()


def test_a_work_directory_that_equals_the_state_directory_keeps_both_spools_apart(
    remote_transport: RemoteTransport, state_home: Path
) -> None:
    config = attrs.evolve(CONFIG, work_directory=state_home / "jpsi/work")
    with executor_of(remote_transport, config) as executor:
        job = Job(shell("exit 3"))
        executor.submit(job)

        assert end(job).exit_code == 3


def test_a_submission_is_one_command(executor: JobExecutor, remote_transport: RemoteTransport) -> None:
    gate = Gate(remote_transport.home / "gate")
    first = Job(gate.job())
    executor.submit(first)
    alike = [Job(gate.job()) for _ in range(5)]
    for submit, jobs in ((executor.submit, [Job(gate.job())]), (executor.submit_many, [alike])):
        before = len([it for it in remote_transport.sent if "tsubmit" in it])
        submit(*jobs)  # type: ignore[operator]  # either is called as it wants to be
        assert len([it for it in remote_transport.sent if "tsubmit" in it]) - before == 1
    gate.open()
    assert [end(it).exit_code for it in alike] == [0] * 5


def test_markers_move_to_the_folder_of_the_job_on_both_hosts(
    remote_transport: RemoteTransport, state_home: Path
) -> None:
    # The patience is long: an end by the queue, before its marker is here, would leave the marker behind.
    patient = attrs.evolve(CONFIG, grace=timedelta(seconds=PATIENCE))
    with executor_of(remote_transport, patient) as executor:
        job, other = Job(shell("exit 3")), Job(Gate(remote_transport.home / "never").job())
        executor.submit(other)
        executor.submit(job)
        end(job)

        name = f"{job.id}.1.exit.run*.3"
        remote, local = remote_root(remote_transport), mirror(state_home)
        assert eventually(lambda: list((remote / "jobs" / job.id).glob(name)))
        assert eventually(lambda: list((local / "jobs" / job.id).glob(name)))
        assert eventually(lambda: not list((local / "events").iterdir()))
        other.cancel()
        end(other)


def test_a_refused_submission_leaves_nothing_on_either_host(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler, state_home: Path
) -> None:
    scheduler.faults.fail("tsubmit", returncode=2)
    job = Job(shell("exit 3"))

    with pytest.raises(jpsi.InvalidJobException):
        executor.submit(job)

    assert not list((remote_root(remote_transport) / "jobs").iterdir())
    assert not list((mirror(state_home) / "jobs").iterdir())
    executor.submit(job)
    assert end(job).exit_code == 3


def test_an_intent_that_cannot_be_written_remotely_is_an_error(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler
) -> None:
    (remote_transport.home / ".local").write_text("a file")

    with pytest.raises(jpsi.SubmitException, match=r"could not be recorded in .*remote home") as caught:
        executor.submit(Job(shell("exit 3")))

    assert not caught.value.transient
    assert not scheduler.jobs


# ------------------------------------------------------------------------------------- a lost connection


def test_a_job_that_no_connection_submitted_can_be_submitted_later(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler
) -> None:
    remote_transport.down()
    job = Job(shell("exit 3"))

    for _ in range(2):
        with pytest.raises(jpsi.SubmitException) as caught:
            executor.submit(job)

        assert caught.value.transient
        assert "may run" not in str(caught.value)
    remote_transport.up()
    executor.submit(job)
    assert end(job).exit_code == 3
    assert len(scheduler.jobs) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before it runs", "after it has run"])
@pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
def test_a_connection_that_breaks_during_submission_runs_the_job_once(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    after: bool,
    lag: float,
) -> None:
    proof = Proof(remote_transport.home / "proof")
    job = Job(proof.job(3))
    scheduler.lag = lag
    remote_transport.cut("tsubmit", after=after)

    try:
        executor.submit(job)
    except jpsi.SubmitException:
        assert job.status.state is JobState.NEW
        executor.submit(job)
    scheduler.lag = 0
    scheduler.settle()

    assert end(job).exit_code == 3
    assert scheduler.wait_for(lambda: all(it.state.final for it in scheduler.jobs), PATIENCE)
    assert proof.runs == 1


def test_an_outage_during_submission_leaves_the_outcome_open(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler
) -> None:
    proof = Proof(remote_transport.home / "proof")
    job = Job(proof.job(3))
    scheduler.lag = 3600
    remote_transport.cut("tsubmit", after=True, stays_down=True)

    with pytest.raises(jpsi.SubmitException, match="may run or not"):
        executor.submit(job)
    with pytest.raises(jpsi.SubmitException):
        executor.submit(job)

    remote_transport.up()
    assert scheduler.wait_for(lambda: proof.runs == 1, PATIENCE)
    with pytest.raises(jpsi.SubmitException, match="runs already"):
        executor.submit(job)
    scheduler.lag = 0
    (found,) = [it for it in executor.recover() if it.id == job.id]
    assert end(found).exit_code == 3
    assert proof.runs == 1


def test_the_error_for_a_job_that_was_never_sent_mentions_no_run(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler
) -> None:
    """Nothing is in doubt if jpsi never reached the remote host."""
    job = Job(shell("exit 3"))
    remote_transport.down()

    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(job)

    assert "may run" not in str(caught.value)
    assert caught.value.transient
    assert job.status.state is JobState.NEW
    assert jpsi_engine.job_store.jobs() == []
    remote_transport.up()
    executor.submit(job)
    assert end(job).exit_code == 3
    assert len(scheduler.jobs) == 1


def test_states_freeze_during_an_outage_and_nothing_fails(
    executor: JobExecutor, remote_transport: RemoteTransport
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job, waits = Job(gate.job(7)), Job(Gate(remote_transport.home / "other gate").job(8))
    executor.submit_many([job, waits])
    for it in (job, waits):
        assert it.wait(PATIENCE, target_states=JobState.ACTIVE)

    remote_transport.down()
    gate.open()
    # longer than every wait in CONFIG
    assert job.wait(2) is None
    assert [it.status.state for it in (job, waits)] == [JobState.ACTIVE] * 2
    remote_transport.up()

    assert end(job).exit_code == 7
    Gate(remote_transport.home / "other gate").open()
    assert end(waits).exit_code == 8


def test_a_job_that_ends_while_markers_do_not_arrive_keeps_its_code(
    remote_transport: RemoteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(remote_transport.home / "gate")
    with executor_of(remote_transport) as executor:
        job = Job(gate.job(7))
        executor.submit(job)
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

        # the queue answers, and markers arrive neither by stream nor by poll
        with monkeypatch.context() as patched:
            patched.setattr("jpsi_engine.remote.marker_stream.render_poll", lambda _: "exit 1")
            remote_transport.listens = False
            remote_transport.hang_up()
            gate.open()
            assert job.wait(2) is None
        remote_transport.listens = True

        assert end(job).exit_code == 7


def test_jpsi_polls_for_markers_if_it_cannot_stream_them(remote_transport: RemoteTransport) -> None:
    remote_transport.listens = False
    with executor_of(remote_transport) as executor:
        job = Job(shell("exit 7"))
        executor.submit(job)

        assert end(job).exit_code == 7


@pytest.mark.parametrize("is_down", [False, True], ids=["polls", "outage"])
def test_an_unreferenced_executor_is_collected_though_no_stream_opens(
    remote_transport: RemoteTransport, is_down: bool
) -> None:
    remote_transport.listens = False
    executor, job = executor_of(remote_transport), Job(Gate(remote_transport.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    if is_down:
        remote_transport.down()
    held = weakref.ref(executor)

    del executor, job

    # a thread in the middle of a round holds it for a moment
    assert eventually(lambda: gc.collect() >= 0 and held() is None)


# ---------------------------------------------------------------------------------------------- other hosts


@pytest.fixture
def other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes this host another one, which has no mirror."""

    def move() -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))

    return move


def test_jobs_are_recovered_on_another_host(
    executor: JobExecutor, remote_transport: RemoteTransport, other_host: Callable[[], None]
) -> None:
    gate = Gate(remote_transport.home / "gate")
    alone, alike, ended = Job(gate.job(7)), [Job(gate.job(code)) for code in range(3)], Job(shell("exit 5"))
    executor.submit(ended)
    end(ended)
    executor.submit(alone)
    executor.submit_many(alike)
    for job in (alone, *alike):
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

    other_host()
    with executor_of(remote_transport) as fresh:
        found = {job.id: job for job in fresh.recover()}
        assert set(found) >= {alone.id, *(it.id for it in alike)}
        assert {job.native_id for job in found.values()} >= {alone.native_id}
        gate.open()

        assert [end(found[it.id]).exit_code for it in (alone, *alike)] == [7, 0, 1, 2]
        assert not fresh.recover()
    assert [end(it).exit_code for it in (alone, *alike)] == [7, 0, 1, 2]


def test_a_queued_job_is_found_by_its_tag_on_another_host(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    other_host: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler.slots = 0
    job = Job(shell("exit 7"))
    executor.submit(job)
    other_host()

    with executor_of(remote_transport) as fresh:
        # the attempt may still be in a handoff
        assert not fresh.recover()
        monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)
        (found,) = fresh.recover()
        assert (found.id, found.native_id) == (job.id, job.native_id)
        scheduler.slots = 8
        scheduler.settle()

        assert end(found).exit_code == 7


def test_an_incomplete_folder_is_read_again(
    executor: JobExecutor, remote_transport: RemoteTransport, tmp_path: Path, other_host: Callable[[], None]
) -> None:
    job = Job(Gate(remote_transport.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    folder = remote_root(remote_transport) / "jobs" / job.id
    other_host()

    with executor_of(remote_transport) as fresh:
        shutil.move(folder, tmp_path / "whole")
        folder.mkdir()
        assert not fresh.recover()
        shutil.rmtree(folder)
        shutil.move(tmp_path / "whole", folder)

        assert [it.id for it in fresh.recover()] == [job.id]
    job.cancel()
    end(job)


def test_a_client_on_another_host_takes_over_from_a_killed_one(
    remote_transport: RemoteTransport, scheduler: FakeScheduler, other_host: Callable[[], None]
) -> None:
    proof = Proof(remote_transport.home / "proof")
    scheduler.faults.accept_and_hang("tsubmit")
    with client("toy", CONFIG, [proof.job(3)], url=remote_transport.url) as process:
        assert scheduler.wait_for(lambda: scheduler.jobs, PATIENCE)
        process.kill()
    assert scheduler.wait_for(lambda: scheduler.jobs[0].state.final, PATIENCE)
    other_host()

    with executor_of(remote_transport) as fresh:
        (job,) = fresh.recover()
        assert end(job).exit_code == 3
    assert proof.runs == 1


def test_jobs_that_are_removed_locally_are_removed_remotely(
    remote_transport: RemoteTransport, state_home: Path
) -> None:
    # No poll: a poll of the queue fetches claims, which renew the time of a folder. Markers suffice.
    no_poll = attrs.evolve(CONFIG, shortest_interval=2 * timedelta(seconds=PATIENCE))
    jobs = [Job(shell("exit 0")) for _ in range(3)]
    with executor_of(remote_transport, no_poll) as executor:
        executor.submit(jobs[0])
        executor.submit_many(jobs[1:])
        for job in jobs:
            end(job)
    remote, local = remote_root(remote_transport), mirror(state_home)
    assert eventually(lambda: not [*(remote / "events").iterdir(), *(local / "events").iterdir()])
    for path in (*(local / "arrays").iterdir(), *(local / "jobs").iterdir()):
        os.utime(path, (0, 0))

    with executor_of(remote_transport, attrs.evolve(CONFIG, keep_count=0)) as other:
        gate = Gate(remote_transport.home / "gate")
        last = Job(gate.job())
        other.submit(last)

        assert eventually(lambda: [it.name for it in (remote / "jobs").iterdir()] == [last.id])
        assert eventually(lambda: not list((remote / "arrays").iterdir()))
        gate.open()
        end(last)


def test_a_remote_folder_that_could_not_be_removed_is_not_recovered_and_is_removed_later(
    executor: JobExecutor, remote_transport: RemoteTransport, state_home: Path
) -> None:
    """A cancelled job is an example: no remote file records the cancellation."""
    job = Job(Gate(remote_transport.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    job.cancel()
    end(job)
    os.utime(mirror(state_home) / "jobs" / job.id, (0, 0))
    remote = remote_root(remote_transport) / "jobs" / job.id
    config = attrs.evolve(CONFIG, keep_count=0)

    remote_transport.down()
    with executor_of(remote_transport, config) as other:
        with pytest.raises(jpsi.SubmitException):
            other.recover()
        assert eventually(lambda: not (mirror(state_home) / "jobs" / job.id).exists())
        # the removal was tried and failed
        assert eventually(lambda: not any(it.name == "jpsi-prune" for it in threading.enumerate()))
        remote_transport.up()
        assert remote.exists()
        assert not other.recover()
    with executor_of(remote_transport, config) as other:
        assert not other.recover()
        assert eventually(lambda: not remote.exists())


def test_two_hosts_follow_one_job(
    executor: JobExecutor, remote_transport: RemoteTransport, other_host: Callable[[], None]
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    other_host()

    with executor_of(remote_transport) as other:
        (found,) = other.recover()
        # it gets no marker before the other client has moved them all
        remote_transport.listens = False
        remote_transport.hang_up()
        gate.open()

        assert [end(it).exit_code for it in (job, found)] == [7, 7]


def test_a_failed_submission_is_not_recovered(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    other_host: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler.faults.fail("tsubmit", returncode=0, stdout="garbage\n")
    with pytest.raises(jpsi.SubmitException, match="will not run"):
        executor.submit(Job(shell("exit 3")))
    other_host()
    monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)

    with executor_of(remote_transport) as fresh:
        assert not fresh.recover()


def test_an_attempt_of_another_host_is_left_to_it(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    other_host: Callable[[], None],
) -> None:
    """Both clients found the job as one that was never sent; the queued attempt runs."""
    scheduler.slots = 0
    job, twin = Job(shell("exit 7")), Job(shell("exit 7"))
    twin._id, job._attempt, twin._attempt = job.id, 1, 1
    executor.submit(job)
    other_host()

    with (
        executor_of(remote_transport) as other,
        pytest.raises(jpsi.SubmitException, match="another machine"),
    ):
        other.submit(twin)
    scheduler.slots = 8
    scheduler.settle()

    assert end(job).exit_code == 7


def test_a_job_that_was_cancelled_in_the_queue_is_not_recovered(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    other_host: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the record of the request it would look like a job that never reached the batch system."""
    scheduler.slots = 0
    job = Job(shell("exit 7"))
    executor.submit(job)
    job.cancel()
    assert end(job).state is JobState.CANCELED
    assert job.native_id is not None
    scheduler.vanish(job.native_id)
    other_host()
    monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)

    with executor_of(remote_transport) as fresh:
        assert not fresh.recover()


def test_attaching_to_a_job_of_another_host_uses_its_markers(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    other_host: Callable[[], None],
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    assert job.native_id is not None
    other_host()

    with executor_of(remote_transport) as other:
        found = Job()
        other.attach(found, job.native_id)
        gate.open()

        assert (end(found).exit_code, end(found).evidence) == (7, jpsi.Evidence.MARKER)


def test_attach_without_connection_fails_for_a_job_that_is_not_in_the_mirror(
    executor: JobExecutor, remote_transport: RemoteTransport
) -> None:
    remote_transport.down()

    with pytest.raises(TransportError):
        executor.attach(Job(), "17")


def test_recover_without_connection_returns_the_jobs_of_the_mirror(
    executor: JobExecutor, remote_transport: RemoteTransport, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)

    with executor_of(remote_transport) as fresh:
        remote_transport.down()
        (found,) = fresh.recover()
        assert "jobs of other machines are left out" in caplog.text
        remote_transport.up()
        gate.open()

        assert (found.id, end(found).exit_code) == (job.id, 7)


def test_recover_without_connection_and_mirror_fails(
    executor: JobExecutor, remote_transport: RemoteTransport
) -> None:
    remote_transport.down()

    with pytest.raises(TransportError):
        executor.recover()
