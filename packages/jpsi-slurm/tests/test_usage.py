"""What jobs that ended well have used is asked of the accounting once somebody wants to know it."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

import jpsi
from jpsi_engine import job_store
from jpsi_engine.shown_jobs import EndedJob, query_usage
from jpsi_slurm.fake import listing
from jpsi_testing.fake import FakeScheduler


@pytest.fixture
def slurm(
    fake_commands: Callable[..., FakeScheduler], monkeypatch: pytest.MonkeyPatch
) -> tuple[FakeScheduler, dict[str, str]]:
    """Return a Slurm that measures, with the values that its accounting has in place of others."""
    values = {"MaxRSS": "2048K", "TotalCPU": "00:00:07"}
    columns = listing._account_columns

    def measured(*arguments: object) -> dict[str, object]:
        found = columns(*arguments)  # type: ignore[arg-type]  # those of the function
        assert values.keys() <= found.keys()
        return {**found, **{name: lambda _, text=text: text for name, text in values.items()}}

    monkeypatch.setattr(listing, "_account_columns", measured)
    return fake_commands("slurm"), values


def run_jobs(count: int) -> list[jpsi.Job]:
    jobs = [jpsi.Job(jpsi.JobSpec("/bin/true")) for _ in range(count)]
    with jpsi.JobExecutor("slurm") as executor:
        executor.submit_many(jobs)
        for job in jobs:
            assert job.wait() is not None
            assert job.status.state is jpsi.JobState.COMPLETED
    return jobs


def queries(scheduler: FakeScheduler) -> int:
    return sum("MaxRSS" in " ".join(it.invocation.argv) for it in scheduler.log)


@pytest.mark.parametrize("count", [1, 3], ids=["a job", "an array"])
def test_one_query_tells_what_several_jobs_have_used(
    slurm: tuple[FakeScheduler, dict[str, str]], count: int
) -> None:
    scheduler, _ = slurm
    jobs = run_jobs(count)
    before = queries(scheduler)

    found = job_store.account(job_store.jobs())

    assert found == {it.id: {"used.cpu": 7.0, "used.memory": 2 << 20} for it in jobs}
    assert (before, queries(scheduler)) == (0, 1)
    assert [it.accounted for it in job_store.jobs()] == list(found.values())
    assert job_store.account(job_store.jobs()) == {}
    assert queries(scheduler) == 1


def test_what_another_job_used_that_has_the_native_id_now_is_not_taken(
    slurm: tuple[FakeScheduler, dict[str, str]],
) -> None:
    _, values = slurm
    run_jobs(1)
    values["Comment"] = f"jpsi-{uuid.uuid4()}-1"

    assert job_store.account(job_store.jobs()) == {}


@pytest.mark.parametrize(
    ("cpu", "told"), [("00:00:00", {}), ("00:00:07", {"used.cpu": 7.0})], ids=["nor CPU time", ""]
)
def test_a_job_whose_memory_was_not_measured_is_asked_for_again(
    slurm: tuple[FakeScheduler, dict[str, str]], cpu: str, told: dict[str, float]
) -> None:
    scheduler, values = slurm
    (job,) = run_jobs(1)
    values |= {"MaxRSS": "", "TotalCPU": cpu}

    assert job_store.account(job_store.jobs()) == {job.id: told}
    assert job_store.account(job_store.jobs()) == {job.id: told}
    assert queries(scheduler) == 2, [it.invocation.argv for it in scheduler.log]


def test_without_an_accounting_the_error_says_so(slurm: tuple[FakeScheduler, dict[str, str]]) -> None:
    scheduler, _ = slurm
    (job,) = run_jobs(1)
    scheduler.accounting = False

    found = job_store.account(job_store.jobs())

    assert str(found[job.id]) == "it keeps no accounting that jpsi can ask"


def test_a_damaged_native_id_spoils_no_query(slurm: tuple[FakeScheduler, dict[str, str]]) -> None:
    (job,) = run_jobs(1)
    wanted = {"damaged": EndedJob("1+", None, None), job.id: EndedJob(job.native_id or "", None, None)}

    with jpsi.JobExecutor("slurm") as executor:
        found = query_usage(executor.system, wanted)

    assert found is not None
    assert found.keys() == {job.id}
