"""Jobs where files are elsewhere: what is here mirrors what is there, and a line that is cut costs no job."""

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
from remote_jobs import CONFIG, PATIENCE, end, executor_of, far_root, mirror


def test_the_transport_has_files_of_its_own(elsewhere: RemoteTransport) -> None:
    assert isinstance(elsewhere, FileTransport)
    assert isinstance(elsewhere, LineTransport)
    assert isinstance(elsewhere, BytesTransport)
    assert not elsewhere.is_local
    assert elsewhere.exchange(Command(["cat"]), b"\xff").stdout == b"\xff"


def test_a_line_that_is_cut_as_it_is_opened_ends(
    elsewhere: RemoteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = LocalTransport.open

    def cut(here: LocalTransport, command: Command) -> Lines:
        lines = opened(here, command)
        elsewhere.down()
        return lines

    monkeypatch.setattr(LocalTransport, "open", cut)

    assert not list(elsewhere.open(Command(["sleep", "1000"])))


def test_a_job_and_what_carries_it_out_know_nothing_of_the_files_here(
    executor: JobExecutor, elsewhere: RemoteTransport, state_home: Path
) -> None:
    job = Job(shell('pwd; echo "$HOME"; echo err >&2'))
    executor.submit(job)

    assert end(job).exit_code == 0
    root = far_root(elsewhere)
    assert job.streams is not None
    assert job.streams.stdout == root / "jobs" / job.id / "stdout"
    assert job.streams.stdout.read_text().splitlines()[0] == str(elsewhere.home)
    output = job.output("stderr")
    part = None if output is None else output.read()
    assert part is not None
    assert part.data == b"err\n"
    texts = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert len(texts) > 3
    assert not any(os.fsencode(state_home) in text for text in texts)


def test_paths_in_the_home_directory_are_those_of_the_one_there(
    executor: JobExecutor, elsewhere: RemoteTransport
) -> None:
    (elsewhere.home / "work").mkdir()
    (elsewhere.home / "pre").write_text("export GREETING=hello\n")
    spec = shell("echo $GREETING; pwd", directory=Path("~/work"), pre_launch=Path("~/pre"))
    spec.stdout_path = Path("~/out")
    job = Job(spec)
    executor.submit(job)

    assert end(job).exit_code == 0
    assert (elsewhere.home / "out").read_text() == f"hello\n{elsewhere.home}/work\n"
    assert job.streams is not None
    assert job.streams.stdout == elsewhere.home / "out"
    assert job.streams.stderr == far_root(elsewhere) / "jobs" / job.id / "stderr"
    (spooled,) = jpsi_engine.job_store.jobs()
    assert spooled.streams == job.streams


def test_a_directory_that_is_not_there_fails_the_job_when_it_runs(executor: JobExecutor) -> None:
    job = Job(shell("exit 0", directory=Path("/no/such/directory")))
    executor.submit(job)

    assert end(job).reason is jpsi.Reason.SETUP


def test_the_configured_work_directory_is_one_there(elsewhere: RemoteTransport, state_home: Path) -> None:
    with executor_of(elsewhere, attrs.evolve(CONFIG, work_directory=Path("~/kept here"))) as executor:
        job = Job(shell("exit 3"))
        executor.submit(job)
        assert end(job).exit_code == 3

    assert job.streams is not None
    assert job.streams.stdout.is_relative_to(elsewhere.home / "kept here")
    assert (mirror(state_home) / "jobs" / job.id).is_dir()


def test_where_both_directories_are_one_they_are_kept_apart(
    elsewhere: RemoteTransport, state_home: Path
) -> None:
    config = attrs.evolve(CONFIG, work_directory=state_home / "jpsi/work")
    with executor_of(elsewhere, config) as executor:
        job = Job(shell("exit 3"))
        executor.submit(job)

        assert end(job).exit_code == 3


def test_a_submission_is_one_command(executor: JobExecutor, elsewhere: RemoteTransport) -> None:
    gate = Gate(elsewhere.home / "gate")
    first = Job(gate.job())
    executor.submit(first)
    alike = [Job(gate.job()) for _ in range(5)]
    for submit, jobs in ((executor.submit, [Job(gate.job())]), (executor.submit_many, [alike])):
        before = len([it for it in elsewhere.sent if "tsubmit" in it])
        submit(*jobs)  # type: ignore[operator]  # either is called as it wants to be
        assert len([it for it in elsewhere.sent if "tsubmit" in it]) - before == 1
    gate.open()
    assert [end(it).exit_code for it in alike] == [0] * 5


def test_markers_go_where_they_belong_on_both_sides(elsewhere: RemoteTransport, state_home: Path) -> None:
    # what the queue says is no end before its marker is here, which nobody would take to the job then
    patient = attrs.evolve(CONFIG, grace=timedelta(seconds=PATIENCE))
    with executor_of(elsewhere, patient) as executor:
        job, other = Job(shell("exit 3")), Job(Gate(elsewhere.home / "never").job())
        executor.submit(other)
        executor.submit(job)
        end(job)

        name = f"{job.id}.1.exit.run.3"
        far, here = far_root(elsewhere), mirror(state_home)
        assert eventually((far / "jobs" / job.id / name).exists)
        assert eventually((here / "jobs" / job.id / name).exists)
        assert eventually(lambda: not list((here / "events").iterdir()))
        other.cancel()
        end(other)


def test_a_refused_submission_leaves_nothing_on_either_side(
    executor: JobExecutor, elsewhere: RemoteTransport, scheduler: FakeScheduler, state_home: Path
) -> None:
    scheduler.faults.fail("tsubmit", returncode=2)
    job = Job(shell("exit 3"))

    with pytest.raises(jpsi.InvalidJobException):
        executor.submit(job)

    assert not list((far_root(elsewhere) / "jobs").iterdir())
    assert not list((mirror(state_home) / "jobs").iterdir())
    executor.submit(job)
    assert end(job).exit_code == 3


def test_what_cannot_be_written_down_there_is_told(
    executor: JobExecutor, elsewhere: RemoteTransport, scheduler: FakeScheduler
) -> None:
    (elsewhere.home / ".local").write_text("a file")

    with pytest.raises(jpsi.SubmitException, match=r"could not be recorded in .*far home") as caught:
        executor.submit(Job(shell("exit 3")))

    assert not caught.value.transient
    assert not scheduler.jobs


# --------------------------------------------------------------------------------------- a line that is cut


def test_a_line_that_is_down_submits_nothing_and_the_same_job_goes_later(
    executor: JobExecutor, elsewhere: RemoteTransport, scheduler: FakeScheduler
) -> None:
    elsewhere.down()
    job = Job(shell("exit 3"))

    for _ in range(2):
        with pytest.raises(jpsi.SubmitException) as caught:
            executor.submit(job)

        assert caught.value.transient
        assert "may run" not in str(caught.value)
    elsewhere.up()
    executor.submit(job)
    assert end(job).exit_code == 3
    assert len(scheduler.jobs) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before it runs", "after it has run"])
@pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
def test_a_line_that_is_cut_by_a_submission_runs_the_job_once(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    scheduler: FakeScheduler,
    after: bool,
    lag: float,
) -> None:
    proof = Proof(elsewhere.home / "proof")
    job = Job(proof.job(3))
    scheduler.lag = lag
    elsewhere.cut("tsubmit", after=after)

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


def test_a_line_that_is_cut_and_stays_down_leaves_open_what_became_of_a_job(
    executor: JobExecutor, elsewhere: RemoteTransport, scheduler: FakeScheduler
) -> None:
    proof = Proof(elsewhere.home / "proof")
    job = Job(proof.job(3))
    scheduler.lag = 3600
    elsewhere.cut("tsubmit", after=True, stays_down=True)

    with pytest.raises(jpsi.SubmitException, match="may run or not"):
        executor.submit(job)
    with pytest.raises(jpsi.SubmitException):
        executor.submit(job)

    elsewhere.up()
    assert scheduler.wait_for(lambda: proof.runs == 1, PATIENCE)
    with pytest.raises(jpsi.SubmitException, match="runs already"):
        executor.submit(job)
    scheduler.lag = 0
    (found,) = [it for it in executor.recover() if it.id == job.id]
    assert end(found).exit_code == 3
    assert proof.runs == 1


def test_a_job_that_was_never_sent_is_not_said_to_run(
    executor: JobExecutor, elsewhere: RemoteTransport, scheduler: FakeScheduler
) -> None:
    """Where nothing was ever reached, nothing is in doubt."""
    job = Job(shell("exit 3"))
    elsewhere.down()

    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(job)

    assert "may run" not in str(caught.value)
    assert caught.value.transient
    assert job.status.state is JobState.NEW
    assert jpsi_engine.job_store.jobs() == []
    elsewhere.up()
    executor.submit(job)
    assert end(job).exit_code == 3
    assert len(scheduler.jobs) == 1


def test_while_the_line_is_down_states_freeze_and_nothing_fails(
    executor: JobExecutor, elsewhere: RemoteTransport
) -> None:
    gate = Gate(elsewhere.home / "gate")
    job, waits = Job(gate.job(7)), Job(Gate(elsewhere.home / "other gate").job(8))
    executor.submit_many([job, waits])
    for it in (job, waits):
        assert it.wait(PATIENCE, target_states=JobState.ACTIVE)

    elsewhere.down()
    gate.open()
    # longer than anybody's patience
    assert job.wait(2) is None
    assert [it.status.state for it in (job, waits)] == [JobState.ACTIVE] * 2
    elsewhere.up()

    assert end(job).exit_code == 7
    Gate(elsewhere.home / "other gate").open()
    assert end(waits).exit_code == 8


def test_a_job_that_ends_while_markers_cannot_be_heard_of_keeps_its_code(
    elsewhere: RemoteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(elsewhere.home / "gate")
    with executor_of(elsewhere) as executor:
        job = Job(gate.job(7))
        executor.submit(job)
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

        # the queue answers, and nothing tells of markers
        with monkeypatch.context() as patched:
            patched.setattr("jpsi_engine.remote.marker_stream.render_poll", lambda _: "exit 1")
            elsewhere.listens = False
            elsewhere.hang_up()
            gate.open()
            assert job.wait(2) is None
        elsewhere.listens = True

        assert end(job).exit_code == 7


def test_where_nothing_can_be_listened_to_it_is_looked_for_markers(elsewhere: RemoteTransport) -> None:
    elsewhere.listens = False
    with executor_of(elsewhere) as executor:
        job = Job(shell("exit 7"))
        executor.submit(job)

        assert end(job).exit_code == 7


@pytest.mark.parametrize("is_down", [False, True], ids=["looked for", "line is down"])
def test_an_executor_that_nobody_holds_goes_though_nothing_can_be_listened_to(
    elsewhere: RemoteTransport, is_down: bool
) -> None:
    elsewhere.listens = False
    executor, job = executor_of(elsewhere), Job(Gate(elsewhere.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    if is_down:
        elsewhere.down()
    held = weakref.ref(executor)

    del executor, job

    # a thread that is at work just now holds it for a moment
    assert eventually(lambda: gc.collect() >= 0 and held() is None)


# ------------------------------------------------------------------------------------------- other machines


@pytest.fixture
def other_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes this machine another one, which remembers nothing."""

    def move() -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))

    return move


def test_jobs_are_recovered_on_another_machine(
    executor: JobExecutor, elsewhere: RemoteTransport, other_machine: Callable[[], None]
) -> None:
    gate = Gate(elsewhere.home / "gate")
    alone, alike, ended = Job(gate.job(7)), [Job(gate.job(code)) for code in range(3)], Job(shell("exit 5"))
    executor.submit(ended)
    end(ended)
    executor.submit(alone)
    executor.submit_many(alike)
    for job in (alone, *alike):
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

    other_machine()
    with executor_of(elsewhere) as fresh:
        found = {job.id: job for job in fresh.recover()}
        assert set(found) >= {alone.id, *(it.id for it in alike)}
        assert {job.native_id for job in found.values()} >= {alone.native_id}
        gate.open()

        assert [end(found[it.id]).exit_code for it in (alone, *alike)] == [7, 0, 1, 2]
        assert not fresh.recover()
    assert [end(it).exit_code for it in (alone, *alike)] == [7, 0, 1, 2]


def test_a_job_that_waits_is_found_by_its_tag_on_another_machine(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    scheduler: FakeScheduler,
    other_machine: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler.slots = 0
    job = Job(shell("exit 7"))
    executor.submit(job)
    other_machine()

    with executor_of(elsewhere) as fresh:
        # nobody can know that it is not being sent just now
        assert not fresh.recover()
        monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)
        (found,) = fresh.recover()
        assert (found.id, found.native_id) == (job.id, job.native_id)
        scheduler.slots = 8
        scheduler.settle()

        assert end(found).exit_code == 7


def test_a_folder_that_is_being_made_is_looked_at_again(
    executor: JobExecutor, elsewhere: RemoteTransport, tmp_path: Path, other_machine: Callable[[], None]
) -> None:
    job = Job(Gate(elsewhere.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    folder = far_root(elsewhere) / "jobs" / job.id
    other_machine()

    with executor_of(elsewhere) as fresh:
        shutil.move(folder, tmp_path / "whole")
        folder.mkdir()
        assert not fresh.recover()
        shutil.rmtree(folder)
        shutil.move(tmp_path / "whole", folder)

        assert [it.id for it in fresh.recover()] == [job.id]
    job.cancel()
    end(job)


def test_a_killed_client_is_succeeded_on_another_machine(
    elsewhere: RemoteTransport, scheduler: FakeScheduler, other_machine: Callable[[], None]
) -> None:
    proof = Proof(elsewhere.home / "proof")
    scheduler.faults.accept_and_hang("tsubmit")
    with client("toy", CONFIG, [proof.job(3)], url=elsewhere.url) as process:
        assert scheduler.wait_for(lambda: scheduler.jobs, PATIENCE)
        process.kill()
    assert scheduler.wait_for(lambda: scheduler.jobs[0].state.final, PATIENCE)
    other_machine()

    with executor_of(elsewhere) as fresh:
        (job,) = fresh.recover()
        assert end(job).exit_code == 3
    assert proof.runs == 1


def test_what_is_removed_here_is_removed_there(elsewhere: RemoteTransport, state_home: Path) -> None:
    # markers tell all: with what the queue tells, claims come here, which make a folder young
    unasked = attrs.evolve(CONFIG, shortest_interval=2 * timedelta(seconds=PATIENCE))
    jobs = [Job(shell("exit 0")) for _ in range(3)]
    with executor_of(elsewhere, unasked) as executor:
        executor.submit(jobs[0])
        executor.submit_many(jobs[1:])
        for job in jobs:
            end(job)
    far, here = far_root(elsewhere), mirror(state_home)
    assert eventually(lambda: not [*(far / "events").iterdir(), *(here / "events").iterdir()])
    for path in (*(here / "arrays").iterdir(), *(here / "jobs").iterdir()):
        os.utime(path, (0, 0))

    with executor_of(elsewhere, attrs.evolve(CONFIG, keep_count=0)) as other:
        gate = Gate(elsewhere.home / "gate")
        last = Job(gate.job())
        other.submit(last)

        assert eventually(lambda: [it.name for it in (far / "jobs").iterdir()] == [last.id])
        assert eventually(lambda: not list((far / "arrays").iterdir()))
        gate.open()
        end(last)


def test_what_could_not_be_removed_there_is_nobodys_to_recover_and_goes_later(
    executor: JobExecutor, elsewhere: RemoteTransport, state_home: Path
) -> None:
    """Such as a job that was cancelled, which nothing over there tells."""
    job = Job(Gate(elsewhere.home / "never").job())
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    job.cancel()
    end(job)
    os.utime(mirror(state_home) / "jobs" / job.id, (0, 0))
    far = far_root(elsewhere) / "jobs" / job.id
    config = attrs.evolve(CONFIG, keep_count=0)

    elsewhere.down()
    with executor_of(elsewhere, config) as other:
        with pytest.raises(jpsi.SubmitException):
            other.recover()
        assert eventually(lambda: not (mirror(state_home) / "jobs" / job.id).exists())
        # it was tried and given up
        assert eventually(lambda: not any(it.name == "jpsi-prune" for it in threading.enumerate()))
        elsewhere.up()
        assert far.exists()
        assert not other.recover()
    with executor_of(elsewhere, config) as other:
        assert not other.recover()
        assert eventually(lambda: not far.exists())


def test_two_machines_follow_one_job(
    executor: JobExecutor, elsewhere: RemoteTransport, other_machine: Callable[[], None]
) -> None:
    gate = Gate(elsewhere.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    other_machine()

    with executor_of(elsewhere) as other:
        (found,) = other.recover()
        # it hears of nothing before the other one has taken what there is
        elsewhere.listens = False
        elsewhere.hang_up()
        gate.open()

        assert [end(it).exit_code for it in (job, found)] == [7, 7]


def test_a_submission_that_failed_is_nobodys_to_recover(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    scheduler: FakeScheduler,
    other_machine: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler.faults.fail("tsubmit", returncode=0, stdout="garbage\n")
    with pytest.raises(jpsi.SubmitException, match="will not run"):
        executor.submit(Job(shell("exit 3")))
    other_machine()
    monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)

    with executor_of(elsewhere) as fresh:
        assert not fresh.recover()


def test_an_attempt_that_another_machine_has_made_is_left_to_it(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    scheduler: FakeScheduler,
    other_machine: Callable[[], None],
) -> None:
    """Both have found the job as one that was never sent; the one that waits runs."""
    scheduler.slots = 0
    job, twin = Job(shell("exit 7")), Job(shell("exit 7"))
    twin._id, job._attempt, twin._attempt = job.id, 1, 1
    executor.submit(job)
    other_machine()

    with (
        executor_of(elsewhere) as other,
        pytest.raises(jpsi.SubmitException, match="another machine"),
    ):
        other.submit(twin)
    scheduler.slots = 8
    scheduler.settle()

    assert end(job).exit_code == 7


def test_a_job_that_was_cancelled_while_it_waited_is_nobodys_to_recover(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    scheduler: FakeScheduler,
    other_machine: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the request it would look like one that never reached the batch system."""
    scheduler.slots = 0
    job = Job(shell("exit 7"))
    executor.submit(job)
    job.cancel()
    assert end(job).state is JobState.CANCELED
    assert job.native_id is not None
    scheduler.vanish(job.native_id)
    other_machine()
    monkeypatch.setattr("jpsi_engine.remote.remote_host._IN_SUBMISSION_SECONDS", -1000.0)

    with executor_of(elsewhere) as fresh:
        assert not fresh.recover()


def test_a_job_of_another_machine_is_attached_to_with_what_it_leaves(
    executor: JobExecutor,
    elsewhere: RemoteTransport,
    other_machine: Callable[[], None],
) -> None:
    gate = Gate(elsewhere.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    assert job.native_id is not None
    other_machine()

    with executor_of(elsewhere) as other:
        found = Job()
        other.attach(found, job.native_id)
        gate.open()

        assert (end(found).exit_code, end(found).evidence) == (7, jpsi.Evidence.MARKER)


def test_without_a_line_nobody_knows_whose_a_job_is_that_is_not_known_here(
    executor: JobExecutor, elsewhere: RemoteTransport
) -> None:
    elsewhere.down()

    with pytest.raises(TransportError):
        executor.attach(Job(), "17")


def test_without_a_line_the_jobs_that_are_known_here_are_recovered(
    executor: JobExecutor, elsewhere: RemoteTransport, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(elsewhere.home / "gate")
    job = Job(gate.job(7))
    executor.submit(job)

    with executor_of(elsewhere) as fresh:
        elsewhere.down()
        (found,) = fresh.recover()
        assert "jobs of other machines are left out" in caplog.text
        elsewhere.up()
        gate.open()

        assert (found.id, end(found).exit_code) == (job.id, 7)


def test_without_a_line_it_is_not_told_that_there_is_nothing_to_recover(
    executor: JobExecutor, elsewhere: RemoteTransport
) -> None:
    elsewhere.down()

    with pytest.raises(TransportError):
        executor.recover()
