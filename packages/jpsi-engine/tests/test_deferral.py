"""Deferred submissions: recorded jobs that are submitted later, once."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jpsi
from jpsi_engine import host, job_store
from jpsi_engine.spool import ArrayMember, Spool
from jpsi_engine.spool.pruning import prune
from jpsi_engine.verdict import CANCEL, Stop, has_exit_marker
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeScheduler, on_path
from jpsi_testing.threads import in_this_thread
from jpsi_testing.waiting import eventually
from killed_clients import run_client
from toys import install_toy


@pytest.fixture
def executor() -> jpsi.JobExecutor:
    return jpsi.JobExecutor("local")


def the_only() -> job_store.StoredJob:
    (job,) = job_store.jobs()
    return job


def deferred(executor: jpsi.JobExecutor, *, is_held: bool = False) -> jpsi.Job:
    job = jpsi.Job(jpsi.JobSpec("/bin/true", name="later"))
    job_store.defer(executor, [job], [jpsi.Dependency("aaaaaaaa-1", "any")], is_held=is_held)
    return job


def test_a_deferred_job_is_on_disk_and_not_submitted(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)

    found = the_only()
    assert (found.id, found.status.state, found.native_id) == (job.id, jpsi.JobState.NEW, None)
    assert found.spec.attributes.after == [jpsi.Dependency("aaaaaaaa-1", "any")]
    assert found.spec.directory == Path.cwd()
    assert found.remark == (
        f"it is submitted after aaaaaaaa, but no process waits for that; start one: jpsi wait {job.id}"
    )
    assert executor.recover() == []


def test_it_is_submitted_once_by_those_who_recall_it(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)

    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)
    status = recalled.wait()

    assert status is not None
    assert status.state is jpsi.JobState.COMPLETED
    assert the_only().deferral is None
    with pytest.raises(jpsi.InvalidJobException, match="was submitted already"):
        executor.submit(recalled)


def test_what_it_waited_for_is_known_after_its_submission(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    before = the_only().read_dependencies()
    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)
    recalled.wait()

    found = the_only()
    assert (found.attempt, found.spec.attributes.after) == (2, None)
    assert found.read_dependencies() == before == (jpsi.Dependency("aaaaaaaa-1", "any"),)
    (found.folder / "after").unlink()
    with pytest.raises(jpsi.SubmitException, match="what the job was to wait for cannot be read"):
        found.read_dependencies()


def test_a_cancelled_one_is_never_submitted(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    assert job_store.cancel_deferred({job.id: deferral}).done == {job.id}
    assert (the_only().status.state, the_only().deferral) == (jpsi.JobState.CANCELED, None)
    assert deferral.acknowledge([job.id]) == []
    assert executor.recall([job.id]) == []


def test_a_submitted_one_is_cancelled_elsewhere(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)

    assert job_store.cancel_deferred({job.id: deferral}) == job_store.ControlledJobs(set(), {})
    recalled.wait()


def test_one_that_awaits_its_next_attempt_is_cancelled_elsewhere(executor: jpsi.JobExecutor) -> None:
    job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", "exit 3"]))
    job.spec.attributes.retry = {3: 1, "delay": 3600}  # type: ignore[union-attr]  # it has a spec
    job_store.defer(executor, [job], [jpsi.Dependency("aaaaaaaa-1", "any")])
    deferral = the_only().deferral
    assert deferral is not None
    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)
    assert eventually(lambda: the_only().awaits_retry)

    assert job_store.cancel_deferred({job.id: deferral}) == job_store.ControlledJobs(set(), {})
    recalled.cancel()
    assert recalled.wait()


def test_its_age_counts_from_the_time_when_it_was_deferred(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    since = the_only().submitted
    other = jpsi.Job(jpsi.JobSpec("/bin/true"))
    executor.submit(other)
    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)

    first, second = job_store.jobs()
    assert [first.id, second.id] == [job.id, other.id]
    assert first.created == since < first.submitted
    assert second.created == second.submitted
    jpsi.wait_all([other, recalled])


def test_the_history_of_one_that_was_never_submitted_has_no_submission(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    deferral.end([job.id], "the other job failed")

    assert [it.state for it in the_only().history] == [jpsi.JobState.NEW, jpsi.JobState.CANCELED]


def test_a_held_one_is_not_due(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor, is_held=True)
    deferral = the_only().deferral
    assert deferral is not None

    assert deferral.acknowledge([job.id]) == []
    assert the_only().remark == f"it is held, and not submitted yet: jpsi release {job.id}"
    deferral.release([job.id])
    assert deferral.acknowledge([job.id]) == [job.id]


def test_why_it_can_never_start_is_recorded(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    deferral.end([job.id], "the other job failed")

    status = the_only().status
    assert (status.state, status.reason) == (jpsi.JobState.CANCELED, jpsi.Reason.DEPENDENCY)
    assert status.message == "the other job failed"


def deferred_together(executor: jpsi.JobExecutor, own: Sequence[str] = ()) -> list[job_store.StoredJob]:
    """Defer two jobs, the first of which has dependencies of its own, too."""
    jobs = [
        jpsi.Job(jpsi.JobSpec("/bin/true", attributes=jpsi.JobAttributes(after=list(it)))) for it in (own, ())
    ]
    job_store.defer(executor, jobs, AFTER)
    found = {it.id: it for it in job_store.jobs()}
    return [found[job.id] for job in jobs]


AFTER = [jpsi.Dependency(f"aaaaaaaa-{number}", "any") for number in range(3)]


def test_what_jobs_wait_for_is_stored_once(plugin_directory: PluginDirectory) -> None:
    install_toy(plugin_directory)
    with FakeScheduler(slots=0) as fake, on_path("toy", fake), jpsi.JobExecutor("toy") as batch:
        own, other = deferred_together(batch, ["17"])
        recalled = {job.id: job.spec for job in batch.recall([own.id, other.id])}

    assert own.spec.attributes.after == ["17", *AFTER]
    assert other.spec.attributes.after == AFTER
    assert recalled == {own.id: own.spec, other.id: other.spec}
    assert (own.folder / "after").samefile(other.folder / "after")
    assert AFTER[0].native_id not in (other.folder / "intent.1.json").read_text()


def test_a_file_with_too_many_links_is_copied(
    executor: jpsi.JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def refuse(source: str, path: str) -> None:
        if path.endswith("/after"):
            raise OSError(errno.EMLINK, "Too many links", path)
        link(source, path)

    monkeypatch.setattr(os, "link", in_this_thread(refuse, os.link))

    assert deferred_together(executor)[1].spec.attributes.after == AFTER


@pytest.mark.parametrize("content", [None, "", "{}", "[{}]"], ids=["gone", "empty", "mapping", "no job"])
def test_without_what_it_waits_for_no_program_submits_a_job(
    executor: jpsi.JobExecutor, content: str | None
) -> None:
    job = deferred(executor)
    file = the_only().folder / "after"
    file.unlink()
    if content is not None:
        file.write_text(content)

    assert the_only().spec == jpsi.JobSpec()
    assert executor.recall([job.id]) == []
    assert [it.name for it in job_store.damaged()] == ([] if content is None else [f"job {job.id}"])


def test_a_failed_submission_is_reported(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    deferral.give_up(job.id, "the queue is gone")

    assert the_only().remark == "it was not submitted, and cannot run: the queue is gone"


def refuse_submission(executor: jpsi.JobExecutor, job: jpsi.Job) -> Spool:
    """Leave the files of a second attempt that the batch system refused."""
    spool = Spool(the_only().origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None
    # what had to end first has ended
    spec = {**intent.content["spec"], "attributes": {}}
    os.close(spool.prepare(job.id, 2, {**intent.content, "spec": spec, "after": False}, ""))
    spool.discard(job.id, 2, "the controller is busy")
    return spool


def test_a_refused_submission_leaves_it_deferred(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    spool = refuse_submission(executor, job)

    found = the_only()
    assert found.remark == (
        f"it is yet to be submitted, but no process does that; start one: jpsi wait {job.id}"
    )
    assert found.attempt == 2
    assert found.deferral is not None
    assert found.deferral.acknowledge([job.id]) == [job.id]
    prune(spool, time.time() + 1e9, 1.0, 0, has_exit_marker)
    assert job_store.cancel_deferred({job.id: found.deferral}).done == {job.id}
    assert the_only().status.state is jpsi.JobState.CANCELED


def test_a_submission_that_was_cut_short_leaves_it_deferred(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    spool = refuse_submission(executor, job)
    Path(spool.folder(job.id), "unsent.2").unlink()

    deferral = the_only().deferral

    assert deferral is not None
    assert deferral.acknowledge([job.id]) == [job.id]


def test_a_refused_array_leaves_it_deferred(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    spool = Spool(the_only().origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None
    element = {"id": job.id, "attempt": 2, "spec": {}}
    os.close(spool.arrays.prepare("a" * 32, {**intent.content, "count": 1}, [element], "", []))
    spool.link_retry(job.id, 2, ArrayMember("a" * 32, 1))
    assert the_only().deferral is None

    assert spool.arrays.revoke("a" * 32)
    spool.arrays.give_up("a" * 32, "the controller is busy")
    prune(spool, time.time() + 1e9, 1.0, 0, has_exit_marker)

    deferral = the_only().deferral
    assert deferral is not None
    assert deferral.acknowledge([job.id]) == [job.id]


def test_a_cancel_counts_although_a_submission_was_in_progress(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    Spool(the_only().origin.path).stop(job.id, 1, Stop(CANCEL, datetime.now(UTC)))
    refuse_submission(executor, job)
    deferral = the_only().deferral
    assert deferral is not None

    assert deferral.acknowledge([job.id]) == []
    assert the_only().status.state is jpsi.JobState.CANCELED


def test_a_cancel_that_was_cut_short_is_completed(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    Spool(the_only().origin.path).stop(job.id, 1, Stop(CANCEL, datetime.now(UTC)))

    found = the_only()
    assert found.remark == "its cancellation was requested"
    assert found.deferral is not None
    assert found.deferral.acknowledge([job.id]) == []
    assert the_only().status.state is jpsi.JobState.CANCELED


def files_of(deferral: job_store.Deferral) -> Path:
    return the_only().origin.path / "deferred" / deferral.name


def test_it_does_not_start_if_its_directory_is_not_known(executor: jpsi.JobExecutor) -> None:
    deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    files_of(deferral).write_bytes(b"")

    with pytest.raises(OSError, match="is damaged"):
        deferral.start(["/bin/true"])


@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # it outlives the program on purpose
def test_the_process_counts_although_it_cannot_be_recorded(
    executor: jpsi.JobExecutor, tmp_path: Path
) -> None:
    deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    files_of(deferral).with_suffix(".process").mkdir()
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    deferral.start(["/bin/sh", "-c", ': < "$0"', str(gate)])

    assert deferral.is_attended
    assert deferral.process == "a process"
    gate.write_bytes(b"")


@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")
def test_a_start_waits_for_a_process_that_looks_at_the_lock(
    executor: jpsi.JobExecutor, tmp_path: Path
) -> None:
    deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    with files_of(deferral).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not deferral.is_attended
        deferral.start(["/bin/sh", "-c", ': < "$0"', str(gate)], lambda: 0.0, lambda _: file.close())

    assert deferral.is_attended
    assert deferral.process.startswith("process ")
    gate.write_bytes(b"")


def test_a_start_leaves_the_jobs_to_the_process_that_waits(executor: jpsi.JobExecutor) -> None:
    deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    with files_of(deferral).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert deferral.is_attended
        deferral.start(["/bin/true"], iter(range(9)).__next__, lambda _: None)

    assert deferral.process == "a process"


def test_pruning_keeps_it(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    root = the_only().origin.path

    prune(Spool(root), time.time() + 1e9, 1.0, 0, has_exit_marker)

    assert the_only().id == job.id


def test_a_job_that_can_never_run_is_not_recorded(executor: jpsi.JobExecutor) -> None:
    with pytest.raises(jpsi.InvalidJobException):
        job_store.defer(executor, [jpsi.Job(jpsi.JobSpec())])

    assert job_store.jobs() == []


@pytest.mark.parametrize(
    ("is_held", "instead"), [(True, "leave out --hold"), (False, "wait for the other jobs")]
)
def test_a_remote_executor_is_refused_with_what_to_do_instead(*, is_held: bool, instead: str) -> None:
    remote: Any = SimpleNamespace(name="cluster", system=SimpleNamespace(is_remote=True))

    with pytest.raises(jpsi.SubmitException, match=f"jpsi cannot submit jobs later; {instead}"):
        job_store.defer(remote, [jpsi.Job(jpsi.JobSpec("/bin/true"))], is_held=is_held)


def test_all_jobs_are_recorded_or_none(executor: jpsi.JobExecutor) -> None:
    job = jpsi.Job(jpsi.JobSpec("/bin/true"))

    with pytest.raises(jpsi.SubmitException, match="could not be recorded"):
        job_store.defer(executor, [job, job])

    assert job_store.jobs() == []


# Defers a held job, and is killed before or after a call of a function.
CLIENT = """
import sys
import jpsi
from jpsi_engine import job_store
from killed_clients import kill_around

kill_around(*sys.argv[1:])
job_store.defer(
    jpsi.JobExecutor("local"), [jpsi.Job(jpsi.JobSpec("/bin/true"))], [jpsi.Dependency("1")], is_held=True
)
"""
STEPS = [
    ("jpsi_engine.spool.spool", "Spool.reserve", "after"),
    ("jpsi_engine.spool.spool", "Spool.give_up", "before"),
    ("jpsi_engine.spool.spool", "Spool.give_up", "after"),
    ("jpsi_engine.deferral", "store_dependencies", "after"),
    ("jpsi_engine.deferral", "share_dependencies", "after"),
    ("jpsi_engine.host", "write_new", "before"),
    ("jpsi_engine.host", "write_new", "after"),
    ("jpsi_engine.spool.spool", "Spool.revoke", "before"),
    ("jpsi_engine.spool.spool", "Spool.revoke", "after"),
    ("jpsi_engine.spool.spool", "Spool.sync", "after"),
]


@pytest.mark.parametrize(("module", "path", "when"), STEPS, ids=[f"{it[2]} {it[1]}" for it in STEPS])
def test_a_program_killed_while_it_defers_leaves_a_deferred_job_or_none(
    executor: jpsi.JobExecutor, module: str, path: str, when: str
) -> None:
    client = run_client(CLIENT, module, path, when)
    assert client.returncode == -signal.SIGKILL

    # no program submits it
    assert jpsi.JobExecutor("local").recover() == []
    assert job_store.damaged() == []
    for unclear in job_store.jobs():
        jpsi.JobExecutor("local").recall([unclear.id])
        (found,) = job_store.reread([unclear])
        assert found.deferral is not None
        assert found.deferral.acknowledge([found.id]) == []


def test_a_job_is_held_before_it_is_deferred(
    executor: jpsi.JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    monkeypatch.setattr(host, "write", lambda path, _: names.append(Path(path).name))

    deferred(executor, is_held=True)

    assert names[-2:] == ["held", "deferred"]


def test_a_job_that_another_program_submits_is_not_given_up(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    spool = Spool(the_only().origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None

    os.close(spool.prepare(job.id, 2, intent.content, ""))
    deferral.give_up(job.id, "the queue is gone")
    deferral.end([job.id], "the other job failed")

    assert not spool.is_final(job.id, has_exit_marker)


def test_no_jobs_cannot_be_deferred(executor: jpsi.JobExecutor) -> None:
    with pytest.raises(ValueError, match="no jobs"):
        job_store.defer(executor, [])


@pytest.mark.parametrize(
    "content", [b"", b"../../other", b"\xff", None], ids=["empty", "path", "bytes", "folder"]
)
def test_a_damaged_name_is_of_no_deferral(executor: jpsi.JobExecutor, content: bytes | None) -> None:
    deferred(executor)
    file = the_only().folder / "deferred"
    file.unlink()
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)

    found = the_only()

    assert (found.deferral, found.remark) == (None, "it was not submitted, and cannot run")


def test_a_hold_that_comes_too_late_is_for_the_executor(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    (recalled,) = executor.recall([job.id])
    assert recalled.spec is not None
    recalled.spec.attributes.after = None
    executor.submit(recalled)

    assert job_store.hold_deferred({job.id: deferral}) == job_store.ControlledJobs(set(), {})
    assert not deferral.is_held(job.id)
    recalled.wait()


@contextlib.contextmanager
def attended(deferral: job_store.Deferral) -> Iterator[None]:
    """Hold the lock of a deferral, as a process that waits does."""
    with deferral.log.with_suffix("").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_hold_counts_once_the_process_that_submits_has_seen_it(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    pending: list[list[str]] = []

    with attended(deferral):
        # what it has decided before the request is not taken back
        assert deferral.acknowledge([job.id]) == [job.id]
        sleep: Any = lambda _: pending.append(deferral.acknowledge([job.id]))  # noqa: E731
        held = job_store.hold_deferred({job.id: deferral}, lambda: 0.0, sleep)

    assert held.done == {job.id}
    assert pending == [[]]
    assert deferral.is_held(job.id)


def test_a_hold_is_refused_if_the_job_is_submitted_before_the_process_sees_it(
    executor: jpsi.JobExecutor,
) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    spool = Spool(the_only().origin.path)
    intent = spool.intent(job.id, 1)
    assert intent is not None

    with attended(deferral):
        # its decision to submit the job comes before the request, the submission after it
        sleep: Any = lambda _: os.close(spool.prepare(job.id, 2, intent.content, ""))  # noqa: E731
        held = job_store.hold_deferred({job.id: deferral}, lambda: 0.0, sleep)

    assert held == job_store.ControlledJobs(set(), {})
    # nor does it count later, if the submission fails
    spool.discard(job.id, 2, "the controller is busy")
    assert deferral.acknowledge([job.id]) == [job.id]


@pytest.mark.parametrize("request_of", [job_store.hold_deferred, job_store.cancel_deferred])
def test_a_process_that_does_not_react_is_an_error(executor: jpsi.JobExecutor, request_of: Any) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    clock = iter(range(0, 10_000, 60))

    with attended(deferral):
        found = request_of({job.id: deferral}, lambda: float(next(clock)), lambda _: None)

    assert (found.done, list(found.failures)) == (set(), [job.id])
    assert str(found.failures[job.id]).endswith("which submits it, does not react")
    assert not deferral.is_held(job.id)


@pytest.mark.parametrize("request_of", [job_store.hold_deferred, job_store.cancel_deferred])
def test_all_requests_are_there_before_the_first_answer(executor: jpsi.JobExecutor, request_of: Any) -> None:
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/true")) for _ in range(3)]
    # the first two belong to one deferral
    deferrals = [job_store.defer(executor, jobs[:2]), job_store.defer(executor, jobs[2:])]
    wanted = {job.id: deferral for job, deferral in zip(jobs, [deferrals[0], *deferrals], strict=True)}
    seen, sleeps = [it.last_request for it in deferrals], list[float]()

    def answer(seconds: float) -> None:
        sleeps.append(seconds)
        for deferral in deferrals:
            deferral.acknowledge(wanted)

    with attended(deferrals[0]), attended(deferrals[1]):
        found = request_of(wanted, lambda: 0.0, answer)

    assert found == job_store.ControlledJobs(wanted.keys(), {})
    assert len(sleeps) == 1
    # the processes that submit them need not look at all jobs all the time
    assert all(it.last_request != before for it, before in zip(deferrals, seen, strict=True))


def test_a_request_that_cannot_be_written_stops_no_other(
    executor: jpsi.JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/true")) for _ in range(2)]
    deferral = job_store.defer(executor, jobs)
    write = host.write

    def refuse_first(path: str, data: bytes) -> None:
        if jobs[0].id in path:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        write(path, data)

    monkeypatch.setattr(host, "write", refuse_first)
    found = job_store.hold_deferred({job.id: deferral for job in jobs})

    assert (found.done, list(found.failures)) == ({jobs[1].id}, [jobs[0].id])


def test_a_held_job_is_not_recovered(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    spool = refuse_submission(executor, job)
    # the process was killed, and another found that nothing was submitted
    Path(spool.folder(job.id), "unsent.2").unlink()
    deferral = the_only().deferral
    assert deferral is not None

    assert job_store.hold_deferred({job.id: deferral}).done == {job.id}

    assert executor.recover() == []


def raise_failure(found: job_store.ControlledJobs) -> None:
    for error in found.failures.values():
        raise error


FULL: dict[str, Callable[[job_store.Deferral, str], object]] = {
    "hold": lambda deferral, job_id: raise_failure(job_store.hold_deferred({job_id: deferral})),
    "cancel": lambda deferral, job_id: raise_failure(job_store.cancel_deferred({job_id: deferral})),
    "end": lambda deferral, job_id: deferral.end([job_id], "the other job failed"),
    "give up": lambda deferral, job_id: deferral.give_up(job_id, "the queue is gone"),
}


@pytest.mark.parametrize("act", FULL.values(), ids=FULL)
def test_a_full_disk_only_delays(
    executor: jpsi.JobExecutor,
    act: Callable[[job_store.Deferral, str], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.host.files.write_all", full)
        with pytest.raises(jpsi.SubmitException, match="No space left") as refused:
            act(deferral, job.id)

    assert refused.value.transient
    assert deferral.acknowledge([job.id]) == [job.id]


def test_only_the_machine_of_its_processes_submits_a_job(executor: jpsi.JobExecutor) -> None:
    deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    elsewhere = attrs.evolve(deferral, machine="elsewhere")

    with pytest.raises(jpsi.SubmitException, match="only elsewhere"):
        elsewhere.start(["/bin/true"])
    with attended(deferral):
        assert elsewhere.start(["/bin/true"], iter(range(9)).__next__, lambda _: None) is None


def test_a_job_whose_submission_was_cut_short_names_its_deferral(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    spool = Spool(the_only().origin.path)
    os.close(spool.reserve(job.id, 2))

    unclear = the_only()
    assert (unclear.is_unsent, unclear.deferral) == (False, None)
    assert unclear.unclear_deferral is not None
    executor.recall([job.id])

    settled = the_only()
    assert settled.unclear_deferral is None
    assert settled.deferral == unclear.unclear_deferral


def test_pruning_removes_deferrals_without_jobs(executor: jpsi.JobExecutor) -> None:
    job = deferred(executor)
    deferral = the_only().deferral
    assert deferral is not None
    root = the_only().origin.path
    gone = root / "deferred" / "00000000-0000-0000-0000-000000000001"
    for path in (gone, gone.with_suffix(".log"), gone.with_suffix(".process")):
        path.touch()

    prune(Spool(root), time.time(), 1.0, 9, has_exit_marker)
    assert len(list(gone.parent.iterdir())) == 5
    prune(Spool(root), time.time() + 1e9, 1.0, 9, has_exit_marker)

    assert set(gone.parent.iterdir()) == {files_of(deferral), files_of(deferral).with_suffix(".after")}
    assert the_only().id == job.id
