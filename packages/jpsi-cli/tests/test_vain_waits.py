"""Deferred jobs that can never start: jpsi ends them, and other commands wait for that a little."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jpsi
from jpsi import DependencyKind, JobState
from jpsi_cli.stored_jobs import vain_waits
from jpsi_cli.stored_jobs.vain_waits import find_vain_waits, settle_vain_waits
from jpsi_testing.fake import FakeClock

OK, ANY, NOTOK = DependencyKind.OK, DependencyKind.ANY, DependencyKind.NOTOK


def deferral(**changes: Any) -> Any:
    values = {"name": "d1", "is_attended": True, "is_held": False, **changes}
    held = values.pop("is_held")
    return SimpleNamespace(**values, is_held=lambda _: held)


def job(job_id: str, *after: tuple[str, DependencyKind], state: JobState = JobState.NEW, **of: Any) -> Any:
    """A job; it is deferred if it waits for others."""

    def read_dependencies() -> Sequence[jpsi.Dependency]:
        if of.get("is_damaged"):
            raise jpsi.SubmitException("cannot be read")
        return [jpsi.Dependency(*it) for it in after]

    own = of.get("deferral", deferral()) if after else None
    status = jpsi.JobStatus(state)
    return SimpleNamespace(id=job_id, deferral=own, status=status, read_dependencies=read_dependencies)


FAILED = job("a", state=JobState.FAILED)
COMPLETED = job("a", state=JobState.COMPLETED)


@pytest.mark.parametrize(
    ("jobs", "vain"),
    [
        ([FAILED, job("b", ("a", OK))], "b"),
        ([FAILED, job("b", ("a", ANY))], ""),
        ([FAILED, job("b", ("a", NOTOK))], ""),
        ([COMPLETED, job("b", ("a", OK))], ""),
        ([COMPLETED, job("b", ("a", NOTOK))], "b"),
        ([job("a"), job("b", ("a", OK))], ""),
        ([job("b", ("gone", OK))], ""),
        # what waits for a job that is to be ended
        ([FAILED, job("b", ("a", OK)), job("c", ("b", OK)), job("d", ("c", OK))], "bcd"),
        ([FAILED, job("b", ("a", OK)), job("c", ("b", ANY)), job("d", ("b", NOTOK))], "b"),
        ([FAILED, job("b", ("a", ANY), ("a", OK))], "b"),
        # nobody ends these
        ([FAILED, job("b", ("a", OK), deferral=deferral(is_attended=False))], ""),
        ([FAILED, job("b", ("a", OK), deferral=deferral(is_held=True))], ""),
        ([FAILED, job("b", ("a", OK), is_damaged=True)], ""),
    ],
)
def test_jobs_that_jpsi_is_about_to_end_are_found(jobs: list[Any], vain: str) -> None:
    assert find_vain_waits(jobs) == frozenset(vain)


def test_a_chain_of_wide_arrays_takes_one_look_at_each_dependency() -> None:
    count = 0

    def dependencies(names: Sequence[str]) -> Any:
        def read() -> Sequence[jpsi.Dependency]:
            nonlocal count
            count += 1
            return [jpsi.Dependency(it, OK) for it in names]

        return read

    jobs: list[Any] = [FAILED]
    before = ["a"]
    for stage in range(50):
        names = [f"{stage}-{number}" for number in range(20)]
        for it in names:
            found = job(it, ("a", OK))
            found.read_dependencies = dependencies(before)
            jobs.append(found)
        before = names

    assert len(find_vain_waits(jobs)) == count == 1000


@attrs.define
class Store:
    """The jobs on disk, and a clock; after each of the pauses, some have ended."""

    jobs: list[Any]
    #: The seconds after which a job has ended, by id.
    ends: dict[str, float] = attrs.field(factory=dict)
    clock: FakeClock = attrs.field(factory=lambda: FakeClock(0))
    pauses: list[float] = attrs.field(factory=list)

    def read(self) -> list[Any]:
        now = self.clock()
        ended = {it for it, end in self.ends.items() if end <= now}
        return [job(it.id, state=JobState.CANCELED) if it.id in ended else it for it in self.jobs]

    def reread(self, found: Sequence[Any]) -> list[Any]:
        ids = {it.id for it in found}
        return [it for it in self.read() if it.id in ids]

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    def settle(self) -> Sequence[Any]:
        return settle_vain_waits(self.jobs, self.clock, self.sleep)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store([FAILED, job("b", ("a", OK)), job("c", ("b", OK)), job("d", ("c", OK))])
    monkeypatch.setattr(vain_waits.job_store, "jobs", found.read)
    monkeypatch.setattr(vain_waits.job_store, "reread", found.reread)
    return found


def states(jobs: Sequence[Any]) -> str:
    return " ".join(it.status.state.value for it in jobs)


def test_a_process_that_ends_no_job_is_not_waited_for_without_end(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    assert list(store.settle()) == store.jobs

    assert sum(store.pauses) == pytest.approx(40, abs=0.3)
    reported = "jpsi: jpsi is about to end 3 jobs that can never start, and waits for that\n"
    assert capfd.readouterr().err == reported


def test_a_chain_is_waited_for_as_long_as_its_process_ends_its_jobs(store: Store) -> None:
    store.ends = {"b": 30, "c": 60, "d": 90}

    assert states(store.settle()) == "FAILED CANCELED CANCELED CANCELED"
    assert sum(store.pauses) == pytest.approx(90, abs=0.3)


def test_ends_count_as_progress_though_other_jobs_come_to_wait_in_vain(store: Store) -> None:
    names = "efghij"
    store.jobs += [job("x", state=JobState.NEW), *(job(it, ("x", OK)) for it in names)]
    # the jobs behind x wait in vain from then on, and are ended one by one
    store.ends = {"b": 1, "c": 10, "d": 20, "x": 5, **{it: 35 + 15 * at for at, it in enumerate(names)}}

    assert states(store.settle()[-len(names) :]) == " ".join(["CANCELED"] * len(names))


def test_submissions_of_other_jobs_are_no_progress(store: Store) -> None:
    names = "efghij"
    store.jobs += [job("x"), *(job(it, ("x", OK)) for it in names)]
    # another process submits these, as far as this test can tell
    store.ends = {it: 15 + 15 * at for at, it in enumerate(names)}

    store.settle()

    assert sum(store.pauses) == pytest.approx(40, abs=0.3)


def test_once_a_job_has_ended_it_is_returned_as_it_is_then(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    store.ends = {"b": 0.1, "c": 0.1, "d": 0.1}

    assert states(store.settle()) == "FAILED CANCELED CANCELED CANCELED"
    assert store.pauses == [0.2]
    assert capfd.readouterr().err == ""


def test_a_job_that_ends_while_jpsi_reads_the_jobs_is_returned_as_it_is_then(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> list[Any]:
        found = store.read()
        store.ends = {"b": 0, "c": 0, "d": 0}
        return found

    monkeypatch.setattr(vain_waits.job_store, "jobs", read)

    assert states(store.settle()) == "FAILED CANCELED CANCELED CANCELED"
    assert store.pauses == []
