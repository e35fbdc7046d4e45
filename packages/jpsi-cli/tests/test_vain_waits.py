"""Deferred jobs that can never start: jpsi ends them, and other commands wait for that a little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import jpsi
from jpsi import DependencyKind, JobState
from jpsi_cli.stored_jobs import vain_waits
from jpsi_cli.stored_jobs.vain_waits import find_vain_waits, settle_vain_waits

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


@pytest.fixture
def times() -> Iterator[float]:
    return iter(number * 0.5 for number in range(200))


def test_a_process_that_ends_no_job_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], times: Iterator[float]
) -> None:
    jobs = [FAILED, job("b", ("a", OK))]
    monkeypatch.setattr(vain_waits.job_store, "jobs", lambda: jobs)
    monkeypatch.setattr(vain_waits.job_store, "reread", lambda found: found)
    pauses: list[float] = []

    assert settle_vain_waits(jobs, lambda: next(times), pauses.append) == jobs

    assert len(pauses) == 119
    reported = "jpsi: jpsi is about to end 1 job that can never start, and waits for that\n"
    assert capfd.readouterr().err == reported


def test_once_a_job_has_ended_it_is_returned_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], times: Iterator[float]
) -> None:
    waiting, ended = job("b", ("a", OK)), job("b", state=JobState.CANCELED)
    monkeypatch.setattr(vain_waits.job_store, "jobs", lambda: [FAILED, waiting])
    monkeypatch.setattr(vain_waits.job_store, "reread", lambda _: [ended])
    pauses: list[float] = []

    assert settle_vain_waits([FAILED, waiting], lambda: next(times), pauses.append) == [FAILED, ended]

    assert len(pauses) == 1
    assert capfd.readouterr().err == ""
