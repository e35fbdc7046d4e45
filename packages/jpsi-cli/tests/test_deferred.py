"""The process that submits deferred jobs, in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

import jpsi
from jpsi_cli.stored_jobs import deferred, dependencies
from jpsi_engine import job_store
from jpsi_testing.fake import FakeScheduler, on_path
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
    deferral.release(one.id)
    submit = deferred._submit

    def submit_and_release(*arguments: Any) -> None:
        submit(*arguments)
        deferral.release(two.id)

    monkeypatch.setattr(deferred, "_submit", submit_and_release)
    submit_deferred(deferral.name)

    assert [stored(it).deferral for it in (one, two)] == [None, None]


def test_a_job_released_as_the_process_ends_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with jpsi.JobExecutor("local") as local:
        one, two = jobs_after((), ())
        deferral = job_store.defer(local, [one, two], is_held=True)
    deferral.release(one.id)
    acknowledge, started = job_store.Deferral.acknowledge, list[str]()

    def acknowledge_and_release(self: job_store.Deferral, job_ids: Iterable[str]) -> list[str]:
        pending = acknowledge(self, job_ids)
        if not pending:
            deferral.release(two.id)
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


def test_a_job_that_is_gone_is_reported() -> None:
    with jpsi.JobExecutor("local") as local:
        (job,) = jobs_after(())
        deferral = job_store.defer(local, [job], [jpsi.Dependency("nosuch")])

    with pytest.raises(Exception, match="no job has the id"):
        submit_deferred(deferral.name)

    assert "no job has the id, native id or name 'nosuch'" in str(stored(job).remark)


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


def test_this_machine_limits_a_deferred_array() -> None:
    local = jpsi.JobExecutor("local")
    specs = [jpsi.JobSpec("/bin/true", attributes=jpsi.JobAttributes()) for _ in range(2)]

    assert deferred.limit_arrays(local, "local", specs) is local
    for spec in specs:
        spec.attributes.set_custom_attribute("jpsi.at_a_time", 1)
    limited = deferred.limit_arrays(local, "local", specs)

    config: Any = limited.system.site().config
    assert config.max_active == 1
