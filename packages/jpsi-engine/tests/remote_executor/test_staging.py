"""Staging on a remote host: stage in ends before a job runs, stage out before its end is published."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

import jpsi
import jpsi_engine.job_store
from jpsi import (
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    Reason,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
    StagingProgress,
)
from jpsi.plugin import BytesResult, Command
from jpsi_engine.spool.stage_out_files import StageOutFiles
from jpsi_engine.transfer.remote_plan import record_path
from jpsi_testing import RemoteTransport
from jpsi_testing.conformance.base import Gate, Sign, shell
from jpsi_testing.conformance.recovery import client
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.waiting import eventually
from remote_jobs import CONFIG, PATIENCE, end, executor_of, mirror, remote_root

# The size of a file at which the remote dd(1) halts.
_HALTING = 12345
_DD = """#!/bin/sh
case " $* " in
*" bs={size} "*)
    echo >>{halts}
    while [ ! -e {gate} ]; do sleep 0.05; done
esac
exec {dd} "$@"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a new working directory, and return it."""
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    return path


@attrs.frozen
class Halt:
    """A trap that halts the remote dd(1) that copies a file of a certain size."""

    halts: Path
    gate: Gate

    def wait(self) -> None:
        """Wait until a dd(1) is halted."""
        assert eventually(self.halts.exists)


@pytest.fixture
def halt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Halt]:
    halt, folder = Halt(tmp_path / "halts", Gate(tmp_path / "halted")), tmp_path / "bin"
    folder.mkdir()
    dd = _DD.format(size=_HALTING, halts=halt.halts, gate=halt.gate.path, dd=shutil.which("dd"))
    (folder / "dd").write_text(dd)
    (folder / "dd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    yield halt
    halt.gate.open()


@pytest.fixture
def report_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the progress of every transfer, however short it is."""
    monkeypatch.setattr("jpsi_engine.transfer.progress._INTERVAL_SECONDS", 0.0)


def _staged(remote_transport: RemoteTransport) -> list[Path]:
    """Return the remote folders of jobs with staged files."""
    return list((remote_transport.home / ".local/state/jpsi/work").glob("*/staged/*"))


def _folders(state_home: Path) -> list[Path]:
    return list((state_home / "jpsi/work").glob("*/jobs/*"))


def _writes_out(gate: Gate, text: str = "42", **fields: object) -> JobSpec:
    """Return the spec of a job that writes `out` once a gate is open."""
    staged = {"stage_out": [StageOut(Path("out"), "out", mode=StagingMode.MOVE)], **fields}
    return shell(f"{Gate.WAIT}; printf %s {text} >out", gate.path, **staged)


# ----------------------------------------------------------------------------------------- before the job


def test_files_are_staged_before_the_job_and_removed_after_it(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path
) -> None:
    (here / "large").write_bytes(b"x" * 700_000)
    (here / "tree/below").mkdir(parents=True)
    (here / "tree/below/script").write_text("#!/bin/sh\necho ran\n")
    (here / "tree/below/script").chmod(0o755)
    job = Job(
        shell(
            "wc -c <large >out; ./tree/below/script >>out",
            stage_in=[StageIn("large", Path("large")), StageIn("tree", Path("tree"))],
            stage_out=[StageOut(Path("out"), "out"), StageOut(Path("tree"), "got/tree")],
            cleanup=[Path("large"), Path("tree"), Path("out")],
        )
    )
    executor.submit(job)

    assert end(job).exit_code == 0
    assert (here / "out").read_text().split() == ["700000", "ran"]
    assert os.access(here / "got/tree/below/script", os.X_OK)
    assert not _staged(remote_transport)
    assert sorted(it.name for it in remote_transport.home.iterdir()) == [".local"]
    assert not executor.recover()


@pytest.mark.parametrize("stays_down", [False, True], ids=["comes again", "stays down"])
def test_a_connection_that_breaks_during_stage_in_fails_the_submission(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    here: Path,
    state_home: Path,
    stays_down: bool,
) -> None:
    for name in "ab":
        (here / name).write_bytes(name.encode() * 700_000)
    spec = shell("cat a b | wc -c >out", stage_out=[StageOut(Path("out"), "out")])
    spec.stage_in = [StageIn(name, Path(name)) for name in "ab"]
    job = Job(spec)
    remote_transport.cut("in.1.2", after=True, stays_down=stays_down)

    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(job)

    assert caught.value.transient
    assert not scheduler.jobs
    assert not _folders(state_home)
    assert bool(_staged(remote_transport)) is stays_down
    remote_transport.up()
    executor.submit(job)
    assert end(job).exit_code == 0
    assert int((here / "out").read_text()) == 1_400_000


def test_a_failed_stage_in_fails_the_submission_and_leaves_nothing(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    here: Path,
    state_home: Path,
) -> None:
    (here / "a").write_text("text")
    (here / "tree").mkdir()
    os.mkfifo(here / "tree/pipe")
    job = Job(shell("exit 0", stage_in=[StageIn("a", Path("a")), StageIn("tree", Path("tree"))]))

    with pytest.raises(jpsi.SubmitException, match="tree/pipe cannot be read") as caught:
        executor.submit(job)

    assert not caught.value.transient
    assert not scheduler.jobs
    assert not _folders(state_home)
    assert not _staged(remote_transport)


def test_a_long_stage_in_delays_no_other_submission(
    remote_transport: RemoteTransport, here: Path, halt: Halt
) -> None:
    (here / "a").write_bytes(b"x" * _HALTING)
    slow, quick = Job(shell("exit 2", stage_in=[StageIn("a", Path("a"))])), Job(shell("exit 3"))
    with executor_of(remote_transport, attrs.evolve(CONFIG, submit_concurrency=1)) as executor:
        thread = threading.Thread(target=executor.submit, args=(slow,))
        thread.start()
        halt.wait()

        executor.submit(quick)

        assert end(quick).exit_code == 3
        assert slow.status.state is JobState.NEW
        halt.gate.open()
        thread.join()
        assert end(slow).exit_code == 2


def test_a_submission_that_is_refused_leaves_none_of_its_files(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler, here: Path
) -> None:
    (here / "a").write_text("text")
    scheduler.faults.fail("tsubmit", returncode=2)

    with pytest.raises(jpsi.InvalidJobException):
        executor.submit(Job(shell("exit 0", stage_in=[StageIn("a", Path("a"))])))

    assert not _staged(remote_transport)


def test_a_client_killed_during_stage_in_leaves_nothing_to_recover(
    remote_transport: RemoteTransport, scheduler: FakeScheduler, here: Path, state_home: Path, halt: Halt
) -> None:
    for name, size in (("a", 5), ("b", _HALTING)):
        (here / name).write_bytes(b"x" * size)
    spec = shell("exit 0", stage_in=[StageIn(str(here / name), Path(name)) for name in "ab"])
    with client("toy", CONFIG, [spec], url=remote_transport.url) as process:
        halt.wait()
        process.kill()
    halt.gate.open()

    with executor_of(remote_transport) as executor:
        assert not executor.recover()
    assert not scheduler.jobs
    assert _staged(remote_transport)
    (folder,) = _folders(state_home)
    os.utime(folder, (0, 0))
    # the next client removes the unneeded files
    with executor_of(remote_transport) as executor:
        assert not executor.recover()
        assert eventually(lambda: not _staged(remote_transport))


@pytest.mark.usefixtures("report_at_once")
def test_the_staging_callback_gets_the_progress(executor: JobExecutor, here: Path) -> None:
    (here / "a").write_bytes(b"x" * 700_000)
    reports: list[tuple[Job, StagingProgress]] = []

    def report(job: Job, progress: StagingProgress) -> None:
        reports.append((job, progress))
        msg = "a callback that fails keeps no file"
        raise ValueError(msg)

    executor.set_staging_callback(report)
    job = Job(shell("cp a b", stage_in=[StageIn("a", Path("a"))], stage_out=[StageOut(Path("b"), "b")]))
    executor.submit(job)

    assert end(job).state is JobState.COMPLETED
    assert (here / "b").stat().st_size == 700_000
    assert {it for it, _ in reports} == {job}
    progress = [it for _, it in reports]
    assert {it.total for it in progress} == {700_000}
    ends = [(it.path, it.is_in) for it in progress if it.done == it.total]
    assert ends == [(str(here / "a"), True), (str(here / "b"), False)]


# ------------------------------------------------------------------------------------------ after the job


@pytest.mark.usefixtures("report_at_once")
def test_other_processes_can_read_the_progress_of_stage_out(
    executor: JobExecutor, here: Path, halt: Halt
) -> None:
    text = f"mkdir out; cd out; head -c 700000 /dev/zero >large; head -c {_HALTING} /dev/zero >small"
    # the small file comes first, and halts
    job = Job(shell(text, stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(job)
    halt.wait()

    (spooled,) = jpsi_engine.job_store.jobs()

    assert (spooled.remark or "").endswith(f"; staging out {here}/out: 0 bytes of 695.6 KiB")
    halt.gate.open()
    assert end(job).state is JobState.COMPLETED


def test_a_connection_that_breaks_during_stage_out_freezes_the_job(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job = Job(_writes_out(gate))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    remote_transport.cut("out.1.1", stays_down=True)
    gate.open()
    assert eventually(lambda: remote_transport.is_down)

    assert job.wait(1) is None
    assert job.status.state is JobState.ACTIVE
    (spooled,) = jpsi_engine.job_store.jobs()
    assert spooled.status.state is JobState.ACTIVE
    remark = "it ended with exit code 0; its stage out runs, or waits to be started; "
    assert spooled.remark in {f"{remark}the connection broke", f"{remark}there is no connection"}
    assert not (here / "out").exists()
    remote_transport.up()

    assert end(job).state is JobState.COMPLETED
    assert (here / "out").read_text() == "42"
    (spooled,) = jpsi_engine.job_store.jobs()
    assert spooled.status.state is JobState.COMPLETED


def test_a_long_stage_out_delays_no_other_job(executor: JobExecutor, here: Path, halt: Halt) -> None:
    text = f"head -c {_HALTING} /dev/zero >out"
    slow = Job(shell(text, stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(slow)
    halt.wait()

    quick = Job(shell("exit 3"))
    staged = Job(shell("echo 42 >small", stage_out=[StageOut(Path("small"), "small")]))
    executor.submit_many([quick, staged])
    assert [end(it).exit_code for it in (quick, staged)] == [3, 0]
    assert (here / "small").read_text() == "42\n"
    assert slow.status.state is JobState.ACTIVE
    halt.gate.open()

    assert end(slow).state is JobState.COMPLETED
    assert (here / "out").stat().st_size == _HALTING


def test_a_client_takes_over_from_one_killed_during_stage_out(
    remote_transport: RemoteTransport, here: Path, halt: Halt
) -> None:
    targets = [StageOut(Path("small"), str(here / "small")), StageOut(Path("out"), str(here / "out"))]
    text = f"echo 42 >small; head -c {_HALTING} /dev/zero >out; exit 3"
    spec = shell(text, stage_out=[attrs.evolve(it, flags=StageOutFlags.ALWAYS) for it in targets])
    with client("toy", CONFIG, [spec], url=remote_transport.url) as process:
        halt.wait()
        process.kill()
    (spooled,) = jpsi_engine.job_store.jobs()
    assert spooled.status.state is JobState.ACTIVE
    assert not (here / "out").exists()
    (here / "small").unlink()
    halt.gate.open()

    with executor_of(remote_transport) as executor:
        (job,) = executor.recover()
        status = end(job)
        assert not executor.recover()

    assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, 3, Reason.EXIT_CODE)
    assert (here / "out").stat().st_size == _HALTING
    # the next client does not fetch a complete file again
    assert not (here / "small").exists()
    assert not _staged(remote_transport)


def test_one_of_two_clients_that_follow_a_job_fetches_its_files(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path, halt: Halt
) -> None:
    text = f"head -c {_HALTING} /dev/zero >out"
    job = Job(shell(text, stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(job)
    halt.wait()
    with executor_of(remote_transport) as other:
        (found,) = other.recover()
        assert found.wait(1) is None
        halt.gate.open()

        assert [end(it).state for it in (job, found)] == [JobState.COMPLETED] * 2
    assert len(halt.halts.read_text().splitlines()) == 1
    assert (here / "out").stat().st_size == _HALTING


def test_an_outage_keeps_no_thread_whose_executor_is_gone(
    remote_transport: RemoteTransport, here: Path
) -> None:
    def waits() -> bool:
        return any(it.name == "jpsi-stage-out" for it in threading.enumerate())

    gate = Gate(remote_transport.home / "gate")
    job, executor = Job(_writes_out(gate)), executor_of(remote_transport)
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    remote_transport.cut("out.1.1", stays_down=True)
    gate.open()
    assert eventually(lambda: remote_transport.is_down)
    assert waits()

    del job, executor

    def has_ended() -> bool:
        # a thread in the middle of a round releases the executor in a moment
        gc.collect()
        return not waits()

    assert eventually(has_ended)
    assert not (here / "out").exists()


def test_a_job_with_complete_stage_out_and_unpublished_end_is_recovered(
    remote_transport: RemoteTransport, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(files: StageOutFiles, job_id: str, attempt: int) -> None:
        assert Path(record_path(str(Path(files.path(job_id, attempt)).parent), attempt, 1)).exists()
        raise OSError

    gate = Gate(remote_transport.home / "gate")
    with monkeypatch.context() as patched, executor_of(remote_transport) as executor:
        patched.setattr(StageOutFiles, "clear_pending", killed)
        patched.setattr("jpsi_engine.remote.stage_out._FIRST_PAUSE_SECONDS", PATIENCE)
        first = Job(_writes_out(gate))
        executor.submit(first)
        gate.open()
        assert eventually((here / "out").exists)
        assert eventually(lambda: not _staged(remote_transport))
        assert first.wait(0.5) is None

    with executor_of(remote_transport) as executor:
        (job,) = executor.recover()
        assert end(job).state is JobState.COMPLETED
        assert not executor.recover()
    assert (here / "out").read_text() == "42"


@pytest.mark.parametrize("occasion", ["a job", "a program"])
def test_staged_files_that_could_not_be_removed_are_removed_later(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path, state_home: Path, occasion: str
) -> None:
    job = Job(shell("echo 42 >out", stage_out=[StageOut(Path("out"), "out")]))
    remote_transport.cut("rm -rf staged/")
    executor.submit(job)
    assert end(job).state is JobState.COMPLETED
    assert _staged(remote_transport)
    assert not executor.recover()

    if occasion == "a job":
        later = Job(shell("exit 0", stage_out=[StageOut(Path("out"), "out", StageOutFlags.ON_ERROR)]))
        executor.submit(later)
        end(later)
    else:
        with executor_of(remote_transport) as other:
            other.recover()

    assert eventually(lambda: not _staged(remote_transport))
    assert eventually(lambda: not list(mirror(state_home).glob("staged/*")))
    # the folder of the job is still there
    assert (remote_root(remote_transport) / "jobs" / job.id).exists()


@pytest.mark.parametrize("code", [0, 3])
def test_a_failed_stage_out_fails_the_job_and_keeps_the_remote_files(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path, code: int
) -> None:
    (here / "file").write_text("")
    flags = StageOutFlags.ALWAYS
    job = Job(
        shell(
            f"echo 42 >out; exit {code}",
            stage_out=[StageOut(Path("out"), "file/below", flags), StageOut(Path("out"), "kept", flags)],
        )
    )
    executor.submit(job)

    status = end(job)

    reason = Reason.EXIT_CODE if code else Reason.STAGING
    assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, code, reason)
    assert status.metadata["stage_out"] == "failed"
    assert f"stage_out failed: {here}/file/below cannot be written" in (status.message or "")
    (folder,) = _staged(remote_transport)
    assert f"it is still in {folder}/out.1.1/out" in (status.message or "")
    assert (folder / "out.1.1/out").read_text() == "42\n"
    assert (here / "kept").read_text() == "42\n"
    # The queue may have reported a later time before: then the end takes the time of the previous status.
    stored = jpsi_engine.job_store.jobs()[0].status
    source = {"time.source": status.metadata["time.source"]}
    assert attrs.evolve(stored, time=status.time, metadata={**stored.metadata, **source}) == status
    assert not executor.recover()


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set of words: commands about files with these words get no answer."""
    words: set[str] = set()
    exchange = RemoteTransport.exchange

    def exchanged(self: RemoteTransport, command: Command, data: bytes = b"") -> BytesResult:
        if any(word in text for word in words for text in command.argv):
            return BytesResult(returncode=-9, timed_out=True)
        return exchange(self, command, data)

    monkeypatch.setattr(RemoteTransport, "exchange", exchanged)
    return words


def test_a_transfer_without_answer_is_retried(
    executor: JobExecutor, here: Path, unanswered: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    unanswered.add("out.1.1/out")
    job = Job(shell("echo 42 >out", stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(job)

    def has_remark() -> bool:
        return (jpsi_engine.job_store.jobs()[0].remark or "").endswith("could not be read: no answer in time")

    assert eventually(has_remark)
    assert job.status.state is JobState.ACTIVE
    unanswered.clear()

    assert end(job).state is JobState.COMPLETED
    assert (here / "out").read_text() == "42\n"
    warned = [it.message for it in caplog.records if it.levelname == "WARNING"]
    assert len(warned) == 1
    assert "out.1.1/out, where jobs run, could not be read: no answer in time" in warned[0]


def test_an_outage_does_not_count_as_time_without_answer(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    here: Path,
    unanswered: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def has_remark(words: str) -> bool:
        return eventually(lambda: (jpsi_engine.job_store.jobs()[0].remark or "").endswith(words))

    unanswered.add("out.1.1/out")
    job = Job(shell("echo 42 >out", stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(job)
    assert has_remark("no answer in time")
    remote_transport.down()
    assert has_remark("no connection")
    monkeypatch.setattr("jpsi_engine.remote.stage_out._STALL_SECONDS", 0.1)
    remote_transport.up()
    assert has_remark("no answer in time")
    unanswered.clear()

    assert end(job).state is JobState.COMPLETED
    assert (here / "out").read_text() == "42\n"


def test_a_transfer_that_never_gets_an_answer_fails_the_job(
    executor: JobExecutor, here: Path, unanswered: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_engine.remote.stage_out._STALL_SECONDS", 0.0)
    unanswered.add("out.1.1/out")
    files = [StageOut(Path("out"), "out"), StageOut(Path("out"), "also")]
    job = Job(shell("echo 42 >out", stage_out=files))
    executor.submit(job)

    status = end(job)

    assert (status.state, status.reason) == (JobState.FAILED, Reason.STAGING)
    assert "out.1.1/out, where jobs run, could not be read: no answer in time; it is still in" in (
        status.message or ""
    )
    assert (here / "also").read_text() == "42\n"


def test_a_file_is_copied_into_a_directory_and_a_directory_is_merged_into_one(
    executor: JobExecutor, here: Path
) -> None:
    (here / "into").mkdir()
    (here / "tree").mkdir()
    (here / "tree/old").write_text("old")
    job = Job(
        shell(
            "mkdir tree; echo new >tree/new; cp tree/new out",
            stage_out=[StageOut(Path("out"), "into"), StageOut(Path("tree"), "tree")],
        )
    )
    executor.submit(job)

    assert end(job).state is JobState.COMPLETED
    assert (here / "into/out").read_text() == "new\n"
    assert sorted(it.name for it in (here / "tree").iterdir()) == ["new", "old"]


@pytest.mark.parametrize("root", ["~", "{home}"])
def test_cleanup_paths_may_begin_with_the_remote_home(
    executor: JobExecutor, remote_transport: RemoteTransport, here: Path, root: str
) -> None:
    """A job without a directory runs in the remote home, not in the client's working directory."""
    path = f"{root.format(home=remote_transport.home)}/waste"
    job = Job(shell("echo >waste; echo >kept", cleanup=[Path(path)]))
    executor.submit(job)

    status = end(job)

    assert (status.state, status.metadata.get("cleanup")) == (JobState.COMPLETED, None)
    assert (remote_transport.home / "kept").exists()
    assert not (remote_transport.home / "waste").exists()
    with pytest.raises(jpsi.InvalidJobException, match="not below the job's directory"):
        executor.submit(Job(shell("exit 0", cleanup=[Path("/a")], directory=here)))


def test_a_job_cancelled_before_it_runs_leaves_no_remote_files(
    executor: JobExecutor, remote_transport: RemoteTransport, scheduler: FakeScheduler, here: Path
) -> None:
    (here / "a").write_text("text")
    scheduler.slots = 0
    job = Job(shell("exit 0", stage_in=[StageIn("a", Path("a"))]))
    executor.submit(job)
    assert _staged(remote_transport)

    job.cancel()

    assert end(job).state is JobState.CANCELED
    assert not _staged(remote_transport)


@pytest.mark.parametrize("together", [False, True])
def test_a_cancelled_job_that_exits_zero_stages_out_the_files_for_success(
    executor: JobExecutor, here: Path, tmp_path: Path, together: bool
) -> None:
    sign, flags = Sign(tmp_path / "sign"), {"ok": StageOutFlags.ON_SUCCESS, "cancel": StageOutFlags.ON_CANCEL}
    job = Job(
        shell(
            'trap "exit 0" TERM; echo >log; echo >"$1"; while :; do sleep 0.01; done',
            sign.path,
            stage_out=[StageOut(Path("log"), name, flag) for name, flag in flags.items()],
        )
    )
    executor.submit(job)
    assert sign.wait(PATIENCE)

    if together:
        executor.cancel_many([job])
    else:
        job.cancel()

    assert end(job).state is JobState.CANCELED
    assert [it.name for it in here.iterdir()] == ["cancel"]


def test_stage_out_goes_to_the_submitting_host_only(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(remote_transport.home / "gate")
    job = Job(_writes_out(gate))
    executor.submit(job)
    assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    with monkeypatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))
        with executor_of(remote_transport) as other:
            (found,) = other.recover()
            gate.open()
            assert end(found).state is JobState.COMPLETED

    assert end(job).state is JobState.COMPLETED
    assert (here / "out").read_text() == "42"


@pytest.mark.parametrize("is_cut", [False, True])
def test_the_files_of_an_attempt_of_another_host_are_left_to_it(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    scheduler: FakeScheduler,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_cut: bool,
) -> None:
    """Both clients found the job as one that was never sent."""
    (here / "in").write_text("7")
    scheduler.slots = 0
    job, twin = (Job(shell("exit $(cat in)", stage_in=[StageIn("in", Path("in"))])) for _ in range(2))
    twin._id, job._attempt, twin._attempt = job.id, 1, 1
    executor.submit(job)
    with monkeypatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))
        if is_cut:
            remote_transport.cut("in.2.1")
        why = "connection broke" if is_cut else "another machine"
        with executor_of(remote_transport) as other, pytest.raises(jpsi.SubmitException, match=why):
            other.submit(twin)
    scheduler.slots = 8
    scheduler.settle()

    assert end(job).exit_code == 7


def test_pruning_keeps_files_that_are_not_staged_out_yet(
    executor: JobExecutor,
    remote_transport: RemoteTransport,
    here: Path,
    halt: Halt,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No file on another host records that the stage out is due."""
    job = Job(shell(f"head -c {_HALTING} /dev/zero >out", stage_out=[StageOut(Path("out"), "out")]))
    executor.submit(job)
    halt.wait()
    with monkeypatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))
        with executor_of(remote_transport) as other:
            other.recover()
        (folder,) = (tmp_path / "state of another machine").glob("jpsi/work/*/jobs/*")
        os.utime(folder, (0, 0))
        with executor_of(remote_transport, attrs.evolve(CONFIG, keep_count=0)) as other:
            later = Job(shell("exit 0"))
            other.submit(later)
            end(later)
            assert eventually(lambda: not folder.exists())
            assert eventually(lambda: not list((folder.parents[1] / "trash").iterdir()))
    assert (remote_root(remote_transport) / "jobs" / job.id).exists()
    halt.gate.open()

    assert end(job).state is JobState.COMPLETED
    assert (here / "out").stat().st_size == _HALTING
    assert not _staged(remote_transport)
