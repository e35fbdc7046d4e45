"""The process that submits deferred jobs, in this process."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jpsi
from jpsi.plugin import BatchConfig
from jpsi_cli.jobs import control
from jpsi_cli.stored_jobs import deferred, dependencies
from jpsi_cli.stored_jobs.array_limit import starts_bit_by_bit
from jpsi_cli.submission import submit
from jpsi_engine import job_store
from jpsi_engine.local.slots import Slots
from jpsi_engine.scheduler import QuotaReached
from jpsi_engine.spool import Spool
from jpsi_engine.verdict import CANCEL, Stop
from jpsi_testing.fake import FakeScheduler, on_path
from jpsi_testing.threads import in_this_thread
from stored_jobs import stored_job


@pytest.fixture(autouse=True)
def _home(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setattr(deferred, "_RETRY_SECONDS", 0.0)


@pytest.fixture
def slurm() -> Iterator[jpsi.JobExecutor]:
    with FakeScheduler(slots=0) as fake, on_path("slurm", fake), jpsi.JobExecutor("slurm") as executor:
        yield executor
        executor.cancel_many(executor.recover())


def jobs_after(*after: Sequence[str]) -> list[jpsi.Job]:
    return [
        jpsi.Job(jpsi.JobSpec("/bin/true", attributes=jpsi.JobAttributes(after=list(it)))) for it in after
    ]


def submit_deferred(name: str) -> None:
    deferred.submit_deferred(name, os.open(os.devnull, os.O_RDONLY))


def stored(job: jpsi.Job) -> job_store.StoredJob:
    (found,) = [it for it in job_store.jobs() if it.id == job.id]
    return found


def test_each_job_has_its_own_dependencies(slurm: jpsi.JobExecutor) -> None:
    for job in jobs_after((), ()):
        slurm.submit(job)
    one, two = jobs_after(["1"], ["2"])
    deferral = job_store.defer(slurm, [one, two])

    submit_deferred(deferral.name)

    assert [stored(it).spec.attributes.after for it in (one, two)] == [
        [jpsi.Dependency("1")],
        [jpsi.Dependency("2")],
    ]


def test_a_job_released_during_the_submission_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two], is_held=True)
    deferral.release([one.id])
    submit = deferred._DeferredJobs._submit

    def submit_and_release(*arguments: Any) -> None:
        submit(*arguments)
        deferral.release([two.id])

    monkeypatch.setattr(deferred._DeferredJobs, "_submit", submit_and_release)
    submit_deferred(deferral.name)

    assert [stored(it).deferral for it in (one, two)] == [None, None]


def test_a_job_released_as_the_process_ends_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two], is_held=True)
    deferral.release([one.id])
    acknowledge, started = job_store.Deferral.acknowledge, list[str]()

    def acknowledge_and_release(self: job_store.Deferral, job_ids: Iterable[str]) -> list[str]:
        pending = acknowledge(self, job_ids)
        if not pending:
            deferral.release([two.id])
        return pending

    monkeypatch.setattr(job_store.Deferral, "acknowledge", acknowledge_and_release)
    monkeypatch.setattr(deferred, "start_waiting", lambda it: started.append(it.name))
    submit_deferred(deferral.name)

    assert started == [deferral.name]


def test_an_outage_only_delays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    outages = [jpsi.SubmitException("no answer", transient=True)]
    open_executor = job_store.Origin.open

    def fail_once(origin: job_store.Origin) -> jpsi.JobExecutor:
        if outages:
            raise outages.pop()
        return open_executor(origin)

    monkeypatch.setattr(job_store.Origin, "open", fail_once)
    submit_deferred(deferral.name)

    assert stored(job).native_id is not None


def test_a_long_outage_leaves_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    clock, times = Clock(), list[float]()
    monkeypatch.setattr(deferred, "_RETRY_SECONDS", 15.0)
    monkeypatch.setattr(deferred, "time", clock)

    def refuse(*_: object) -> None:
        times.append(clock.now)
        msg = "no answer"
        raise jpsi.SubmitException(msg, transient=True)

    def cancel_at_last() -> None:
        if len(times) == 20:
            assert not deferral.was_cancelled(job.id)
            job_store.cancel_deferred({job.id: deferral}, iter((0.0, 100.0)).__next__, lambda _: None)

    monkeypatch.setattr(jpsi.JobExecutor, "submit", refuse)
    with attended(deferral):
        clock.at_sleep = cancel_at_last
        submit_deferred(deferral.name)

    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert (pauses[:2], pauses[-1]) == ([15.0, 22.5], 300.0)
    # a cancel need not wait for the end of the pause
    assert stored(job).status.state is jpsi.JobState.CANCELED
    assert clock.now - times[-1] < 1.0


def test_a_process_that_waits_reads_its_jobs_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two])
    clock, looks, acknowledge = Clock(), list[float](), job_store.Deferral.acknowledge

    def look(self: job_store.Deferral, job_ids: Iterable[str]) -> list[str]:
        looks.append(clock.now)
        return acknowledge(self, job_ids)

    def request_at_last() -> None:
        if clock.now in {100.0, 200.0}:
            wanted = {(one if clock.now == 100.0 else two).id: deferral}
            job_store.cancel_deferred(wanted, iter((0.0, 100.0)).__next__, lambda _: None)

    # it waits for another job for as long as it has jobs to submit
    def await_dependencies(_: object, is_wanted: Callable[[], object]) -> None:
        while is_wanted():
            clock.sleep(0.5)

    monkeypatch.setattr(deferred, "time", clock)
    monkeypatch.setattr(deferred, "await_dependencies", await_dependencies)
    foreign = dependencies.Dependencies(foreign=[jpsi.Dependency("x")])
    monkeypatch.setattr(deferred, "sort_dependencies", lambda *_: foreign)
    monkeypatch.setattr(job_store.Deferral, "acknowledge", look)
    clock.at_sleep = request_at_last
    with attended(deferral):
        submit_deferred(deferral.name)

    assert [it for it in looks if 0.0 < it < 100.0] == [
        0.5,
        1.0,
        2.0,
        4.0,
        8.0,
        16.0,
        31.0,
        46.0,
        61.0,
        76.0,
        91.0,
    ]
    # the answer to a request comes at once
    assert 100.0 in looks
    assert clock.now == 200.0
    assert [stored(it).status.state for it in (one, two)] == [jpsi.JobState.CANCELED] * 2


class Clock:
    """The functions of the module `time`, for a clock that only a sleep advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.at_sleep()


def test_a_job_that_is_gone_is_reported() -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job], [jpsi.Dependency("nosuch")])

    submit_deferred(deferral.name)

    assert "no job has the id, native id or name 'nosuch'" in str(stored(job).remark)


def refused(*_: object) -> None:
    msg = "no such account"
    raise jpsi.SubmitException(msg)


def test_jobs_that_nobody_can_follow_keep_no_released_one_from_being_submitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = jobs_after((), ())
    one.spec.attributes.retry = {75: 1}  # type: ignore[union-attr]  # it has a spec
    with jpsi.JobExecutor("local") as local:
        deferral = job_store.defer(local, [one, two], is_held=True)
    deferral.release([one.id])
    acknowledge, waiting = deferred._DeferredJobs.acknowledge, list[job_store.Deferral]()

    def acknowledge_and_release(*arguments: Any) -> list[str]:
        found = acknowledge(*arguments)
        if not found:
            deferral.release([two.id])
        return found

    monkeypatch.setattr(deferred._DeferredJobs, "acknowledge", acknowledge_and_release)
    monkeypatch.setattr(deferred, "start_waiting", waiting.append)
    monkeypatch.setattr(deferred, "start_following", refused)
    with pytest.raises(jpsi.SubmitException, match="no such account"):
        submit_deferred(deferral.name)

    assert [it.name for it in waiting] == [deferral.name]


def test_a_refused_job_keeps_no_other_from_being_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two])
    # each waits for others
    monkeypatch.setattr(deferred, "_group", lambda _: {(): [one.id], (jpsi.Dependency("x"),): [two.id]})
    monkeypatch.setattr(deferred, "sort_dependencies", lambda *_: dependencies.Dependencies())
    submit_job = jpsi.JobExecutor.submit
    monkeypatch.setattr(
        jpsi.JobExecutor, "submit", lambda it, job: (refused if job.id == one.id else submit_job)(it, job)
    )

    submit_deferred(deferral.name)

    assert stored(one).remark == "it was not submitted, and cannot run: no such account"
    assert stored(two).native_id is not None


def test_jobs_refused_together_are_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two])

    def refuse_both(_: jpsi.JobExecutor, jobs: Sequence[jpsi.Job]) -> None:
        reasons = {
            one.id: jpsi.SubmitException("no such account"),
            two.id: jpsi.SubmitException("the controller is busy", transient=True),
        }
        failed = {job: reasons[job.id] for job in jobs}
        raise jpsi.BulkException("2 jobs could not be submitted", failed=failed)

    monkeypatch.setattr(jpsi.JobExecutor, "submit_many", refuse_both)
    submit_deferred(deferral.name)

    assert stored(one).remark == "it was not submitted, and cannot run: no such account"
    assert stored(two).native_id is not None


def test_a_full_disk_only_delays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    failures = [jpsi.SubmitException("No space left on device", transient=True)]
    acknowledge = job_store.Deferral.acknowledge

    def fail_once(self: job_store.Deferral, job_ids: Iterable[str]) -> list[str]:
        if failures:
            raise failures.pop()
        return acknowledge(self, job_ids)

    monkeypatch.setattr(job_store.Deferral, "acknowledge", fail_once)
    submit_deferred(deferral.name)

    assert stored(job).native_id is not None


def test_a_job_cancelled_while_its_submission_waits_is_cancelled(slurm: jpsi.JobExecutor) -> None:
    (job,) = jobs_after(())
    deferral = job_store.defer(slurm, [job])
    submit_job = jpsi.JobExecutor.submit

    def submit_late(executor: jpsi.JobExecutor, recalled: jpsi.Job) -> None:
        found = job_store.cancel_deferred({job.id: deferral}, iter((0.0, 100.0)).__next__, lambda _: None)
        assert "does not react" in str(found.failures[job.id])
        submit_job(executor, recalled)

    with pytest.MonkeyPatch.context() as patch, attended(deferral):
        patch.setattr(jpsi.JobExecutor, "submit", submit_late)
        submit_deferred(deferral.name)
    (recalled,) = slurm.recall([job.id])

    status = recalled.wait(60.0)
    assert status is not None
    assert status.state is jpsi.JobState.CANCELED


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "seen late"])
def test_a_request_ends_the_wait_for_a_free_slot(monkeypatch: pytest.MonkeyPatch, is_announced: bool) -> None:
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(deferred, "_LONGEST_LOOK_SECONDS", 100.0 if is_announced else 0.0)
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        for job in (one, two):
            assert job.spec is not None
            job.spec.attributes.set_custom_attribute("jpsi.at_a_time", 1)
        one.spec = attrs.evolve(one.spec, executable="/bin/sleep", arguments=["100"])
        deferral = job_store.defer(local, [one, two])
        acquire = Slots.acquire

        def cancel_once_full(slots: Slots, *args: Any) -> object:
            found = acquire(slots, *args)
            if isinstance(found, QuotaReached) and not deferral.was_cancelled(two.id):
                Spool(deferral.root).stop(two.id, 1, Stop(CANCEL, datetime.now(UTC)))
                if is_announced:
                    deferral.announce()
            return found

        monkeypatch.setattr(Slots, "acquire", cancel_once_full)
        submit_deferred(deferral.name)
        local.cancel_many(local.recover())

    assert stored(two).status.state is jpsi.JobState.CANCELED
    assert stored(two).attempt == 1


@contextlib.contextmanager
def attended(deferral: job_store.Deferral) -> Iterator[None]:
    """Hold the lock of a deferral, as a process that waits does."""
    with deferral.log.with_suffix("").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_wait_reads_no_other_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (held,) = jobs_after(())
        deferral = job_store.defer(local, [held], is_held=True)
    listings, list_jobs = list[int](), job_store.jobs
    monkeypatch.setattr(job_store, "jobs", lambda: listings.append(1) or list_jobs())
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.0)
    looks = iter(range(5))

    unmet = deferred.await_dependencies(
        [jpsi.Dependency(held.id)],
        lambda: next(looks, None) is not None or job_store.cancel_deferred({held.id: deferral}),
    )

    assert unmet is not None
    assert "it is CANCELED" in unmet[0]
    assert len(listings) == 1


def test_a_deferred_job_that_is_waited_for_gets_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (first,) = jobs_after(())
        deferral = job_store.defer(local, [first])
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.0)
    # in this process
    monkeypatch.setattr(deferred, "start_waiting", lambda it: submit_deferred(it.name))

    assert deferred.await_dependencies([jpsi.Dependency(first.id)]) == []
    assert deferral.process == "a process"


def cut_short(job: jpsi.Job) -> None:
    """Leave what a process leaves that is killed as it begins to submit a deferred job."""
    os.close(Spool(stored(job).origin.path).reserve(job.id, 2))


def test_the_first_wait_goes_on_after_a_submission_that_was_cut_short(run: Any, tmp_path: Path) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        job_store.defer(local, [job])
    cut_short(job)

    result = run("wait", job.id)

    assert (result.returncode, result.stderr) == (0, b"")
    assert stored(job).status.state is jpsi.JobState.COMPLETED


@pytest.mark.parametrize(("command", "state"), [("cancel", "CANCELED"), ("hold", "NEW")])
def test_a_job_whose_submission_was_cut_short_is_controlled(run: Any, command: str, state: str) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    cut_short(job)

    assert run(command, job.id).returncode == 0
    assert stored(job).status.state.name == state
    assert deferral.is_held(job.id) is (command == "hold")


def test_a_job_that_vanishes_ends_the_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        job_store.defer(local, [job], is_held=True)
    found = stored(job)
    assert found.deferral is not None
    shutil.rmtree(found.folder)
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(deferred, "start_waiting", lambda _: None)

    awaited = deferred.await_submission([found])

    assert str(awaited.failures[job.id]) == "it is not on disk any more"


def test_a_process_that_fails_is_not_started_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.0)
    started = list[str]()

    def start(it: job_store.Deferral) -> Any:
        started.append(it.name)
        # killed at first; a process that was killed says nothing of the next one
        return SimpleNamespace(poll=lambda: -9 if len(started) == 1 else 1)

    monkeypatch.setattr(deferred, "start_waiting", start)
    awaited = deferred.await_submission([stored(job)])

    assert str(awaited.failures[job.id]).endswith(f"{deferral.log} says why")
    assert len(started) == 2


def test_processes_that_are_killed_again_and_again_follow_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        job_store.defer(local, [job])
    clock, starts = Clock(), list[float]()
    monkeypatch.setattr(deferred, "time", clock)

    def start(_: job_store.Deferral) -> Any:
        starts.append(clock.now)
        return SimpleNamespace(poll=lambda: -9)

    monkeypatch.setattr(deferred, "start_waiting", start)
    awaited = deferred.await_submission([stored(job)], deadline=300.0)

    assert awaited.deferred_ids == {job.id}
    assert [after - before for before, after in itertools.pairwise(starts)] == [
        *(0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
        *(60.0, 60.0, 60.0),
    ]
    assert capfd.readouterr().err == (
        "jpsi: the process that submits deferred jobs was killed by signal 9; jpsi starts another, and if "
        "that is killed too, the next ones ever later\n"
    )


def test_a_wait_for_a_job_that_no_process_submits_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    monkeypatch.setattr(deferred, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(deferred, "_LOOK_PAUSE", 0.0)
    monkeypatch.setattr(deferred, "start_waiting", lambda _: SimpleNamespace(poll=lambda: 1))
    looks = iter(range(5))

    unmet = deferred.await_dependencies([jpsi.Dependency(job.id)], lambda: next(looks, None) is not None)

    assert unmet is None
    assert capfd.readouterr().err == (
        f"jpsi: job {job.id} is not submitted: the process that was to submit it has failed; "
        f"{deferral.log} says why; a process has to run that submits it: jpsi wait {job.id}\n"
    )


def test_only_its_own_machine_submits_a_process(run: Any) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        job_store.defer(local, [job], is_held=True)
    root = stored(job).origin.path
    root.rename(root.with_name("elsewhere"))

    released, waited = run("release", job.id), run("wait", job.id)

    refusal = b"only elsewhere, whose processes they are to be, can submit the deferred jobs"
    assert [it.returncode for it in (released, waited)] == [125, 125]
    assert refusal in released.stderr
    assert refusal in waited.stderr
    found = stored(job)
    assert found.deferral is not None
    assert found.is_unsent


def test_the_ids_of_jobs_are_shown_although_no_process_can_be_started(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(submit, "start_waiting", refused)
    jobs = jobs_after(())
    with jpsi.JobExecutor("local") as local:
        code = submit._defer(jobs, local, dependencies.Dependencies(), is_held=False, as_json=False)

    out, err = capfd.readouterr()
    assert (code, out) == (125, f"{jobs[0].id}\n")
    assert err == (
        f"jpsi: it is on disk and not submitted: no such account; jpsi wait {jobs[0].id} tries that again\n"
    )


def test_jpsi_waits_for_more_jobs_than_a_directive_takes(
    slurm: jpsi.JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [stored_job(f"job{index}", native_id=f"{index}") for index in range(1, 52)]
    wanted = [jpsi.Dependency(job.id) for job in found]
    monkeypatch.setattr(job_store, "jobs", lambda: found)
    slurm.submit(jpsi.Job(jpsi.JobSpec("/bin/true")))

    few = dependencies.sort_dependencies(wanted[1:], slurm, "slurm")
    many = dependencies.sort_dependencies([*wanted, jpsi.Dependency("1")], slurm, "slurm")

    assert (len(few.native), few.foreign) == (50, [])
    assert (many.native, many.foreign) == ([jpsi.Dependency("1")], wanted)


def test_an_id_as_the_job_itself_spells_it_is_one_of_its_batch_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the process was killed that submitted them, so the claims of the jobs have their ids
    origin = job_store.Origin("flux", "", Path("/work/flux"))
    found = [
        stored_job("named", native_id="\N{LATIN SMALL LETTER F WITH HOOK}4JWpL1vw", origin=origin),
        stored_job("unnamed", native_id="unnamed.unreadable", origin=origin),
    ]
    monkeypatch.setattr(job_store, "jobs", lambda: found)
    with FakeScheduler(slots=0) as fake, on_path("flux", fake), jpsi.JobExecutor("flux") as flux:
        sorted_ = dependencies.sort_dependencies([jpsi.Dependency(job.id) for job in found], flux, "flux")

    assert sorted_.native == [jpsi.Dependency("7290690207744")]
    assert sorted_.foreign == [jpsi.Dependency("unnamed")]


def test_show_says_that_a_job_was_never_submitted(run: Any) -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job])
    deferral.end([job.id], "the other job failed")

    lines = run("show", job.id).stdout.decode().splitlines()

    assert "known from:    absence (it was never submitted)" in lines
    assert not any("QUEUED" in line for line in lines)


@pytest.mark.parametrize(
    ("max_active", "limit", "count", "expected"),
    [(None, None, 2, False), (None, 1, 2, True), (4, None, 2, True), (4, None, 1, False)],
)
def test_jobs_of_this_machine_that_wait_for_each_other_start_bit_by_bit(
    max_active: int | None, limit: int | None, count: int, expected: bool
) -> None:
    local = jpsi.JobExecutor("local", config=BatchConfig(max_active=max_active))
    specs = [jpsi.JobSpec("/bin/true", attributes=jpsi.JobAttributes()) for _ in range(count)]
    for spec in specs:
        spec.attributes.set_custom_attribute("jpsi.at_a_time", limit)

    assert starts_bit_by_bit(local, specs) is expected


@pytest.mark.parametrize("name", ["after", "intent.1.json"])
def test_a_job_whose_dependencies_cannot_be_read_waits_until_they_can(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As on a network file system: it would seem to wait for nothing."""
    first, (second,) = jpsi.Job(jpsi.JobSpec("/bin/false")), jobs_after(())
    with jpsi.JobExecutor("local") as local:
        local.submit(first)
        assert first.wait(20) is not None
        deferral = job_store.defer(local, [second], [jpsi.Dependency(first.id)])
    file = Path(stored(second).folder, name)
    hidden = file.with_name("hidden")
    file.rename(hidden)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            assert stored(second).status.state is jpsi.JobState.NEW
            hidden.rename(file)

    monkeypatch.setattr(deferred.time, "sleep", in_this_thread(pause, time.sleep))
    submit_deferred(deferral.name)

    assert pauses[0] == deferred._RETRY_SECONDS
    assert stored(second).status.reason is jpsi.Reason.DEPENDENCY


def test_the_pause_after_a_slow_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred.time, "monotonic", in_this_thread(lambda: 100.0, time.monotonic))

    assert deferred._pause_after(40.0) == deferred._LONGEST_LOOK_SECONDS


def test_a_job_that_ends_before_its_hold_is_left_out_if_others_are_held(
    slurm: jpsi.JobExecutor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/true", name="sweep")) for _ in range(2)]
    slurm.submit_many(jobs)
    hold = jpsi.JobExecutor.hold

    def end_first(executor: jpsi.JobExecutor, job: jpsi.Job) -> None:
        if job.id == jobs[0].id:
            job.cancel()
            assert job.wait(60) is not None
        hold(executor, job)

    monkeypatch.setattr(jpsi.JobExecutor, "hold", end_first)

    assert control.hold(jobs=["sweep"]) == 0
    assert "has ended" not in capfd.readouterr().err
    assert jobs[0].wait(60) is not None
    assert slurm.info(jobs[0]) is None


def test_a_released_job_whose_directory_was_removed_names_it(run: Any, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    job = run("submit", "--hold", "--", "pwd", cwd=place).stdout.decode().strip()
    place.rmdir()

    released, waited = run("release", job), run("wait", job)
    explained = run("explain", job).stdout.decode()

    why = f"there is no directory {str(place)!r} any more, in which jpsi submits the deferred jobs"
    refusal = f"jpsi: job {job}: {why}; make it again: mkdir -p '{place}'\n"
    assert (released.returncode, released.stderr.decode()) == (125, refusal)
    assert (waited.returncode, waited.stderr.decode()) == (125, refusal)
    remedy = f"start one: mkdir -p '{place}' && jpsi wait {job}"
    assert explained == f"NEW: it is yet to be submitted, but no process does that; {remedy}\n"
    place.mkdir()
    assert run("wait", job).returncode == 0
    assert run("logs", job).stdout.decode() == f"{place}\n"
