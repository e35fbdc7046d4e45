"""What jobs used of what they requested: `jpsi usage`, `explain` and the option `--like`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta

import pytest

from jpsi import JobAttributes, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1, SubmitException
from jpsi_cli import stored_jobs as stored_jobs_package
from jpsi_cli.jobs import usage as usage_module
from jpsi_cli.jobs.usage import describe_memory
from jpsi_cli.stored_jobs import Amount, Usage, complete_usages, read_usage
from jpsi_cli.submission.job_spec import make_specs
from jpsi_engine import job_store
from jpsi_engine.job_store import Origin, StoredJob
from jpsi_engine.spool import encode_status
from stored_jobs import SLURM, THEN, active_marker, stored_job

Run = Callable[..., subprocess.CompletedProcess[bytes]]
_GIB = 1 << 30


def used(
    minutes: float | None = 10,
    memory: int | None = 64 * _GIB,
    state: JobState = JobState.COMPLETED,
    reason: Reason | None = None,
    **metadata: float,
) -> Usage:
    """Return the usage of a job that ran for a minute with two cores."""
    end = JobStatus(state, time=THEN + timedelta(seconds=60), reason=reason, metadata=metadata)
    job = stored_job("a1", markers=[active_marker("a1", 0)], final=encode_status(end))
    job.__dict__["spec"] = JobSpec(
        "simulate",
        resources=ResourceSpecV1(cpu_cores_per_process=2, memory=memory),
        attributes=JobAttributes(duration=None if minutes is None else timedelta(minutes=minutes)),
    )
    return read_usage(job)


def test_what_was_not_measured_is_unknown() -> None:
    usage = used()

    assert (usage.cpu, usage.cores.used, usage.memory.used) == (None, None, None)
    assert usage.suggested_memory is None
    assert usage.time == Amount(requested=600, used=60)


def test_the_time_of_a_job_that_was_submitted_again_is_that_of_its_last_attempt() -> None:
    last = {"attempt": 2, "attempt_started": (THEN + timedelta(seconds=50)).isoformat()}

    assert used(**last).time.used == 10  # type: ignore[arg-type]  # texts
    assert used(attempt=2).time.used is None


def test_figures_of_the_whole_job_are_compared_with_its_request() -> None:
    usage = used(**{"used.cpu": 60.0, "used.memory": 3 * _GIB, "used.process_memory": _GIB})

    assert usage.cores == Amount(requested=2, used=1.0)
    assert usage.memory == Amount(requested=64 * _GIB, used=3 * _GIB)
    assert usage.suggested_memory == 3687 << 20
    assert usage.suggested_time == timedelta(minutes=2)


def test_the_busy_cores_of_a_run_that_was_too_short_to_measure_are_unknown() -> None:
    started = (THEN + timedelta(seconds=59.5)).isoformat()

    usage = used(**{"used.cpu": 1.2, "attempt": 2, "attempt_started": started})  # type: ignore[arg-type]

    assert (usage.time.used, usage.cores.used, usage.cpu) == (0.5, None, 1.2)


def test_the_memory_of_the_largest_process_is_no_reason_to_request_less() -> None:
    """The other processes may have used as much."""
    usage = used(**{"used.process_memory": _GIB})

    assert usage.memory == Amount(requested=64 * _GIB, used=_GIB, is_least=True)
    assert usage.suggested_memory is None


def test_the_memory_of_the_largest_process_may_be_a_reason_to_request_more() -> None:
    assert used(memory=_GIB, **{"used.process_memory": _GIB}).suggested_memory == 1229 << 20


@pytest.mark.parametrize(
    ("amount", "suggestion", "is_better"),
    [
        (Amount(requested=100, used=10), 60, True),
        (Amount(requested=100, used=10), 100, False),
        (Amount(requested=8, used=3), 60, False),
        (Amount(requested=100, used=70), 84, False),
        (Amount(requested=100, used=95), 114, True),
        (Amount(requested=100, used=10, is_least=True), 60, False),
        (Amount(used=10), 60, False),
    ],
)
def test_a_suggestion_is_smaller_if_much_was_not_used_and_larger_if_nearly_all_was(
    amount: Amount,
    suggestion: float,
    is_better: bool,
) -> None:
    assert amount.is_better(suggestion) == is_better


@pytest.mark.parametrize(
    ("state", "reason"),
    [(JobState.FAILED, Reason.EXIT_CODE), (JobState.FAILED, None), (JobState.CANCELED, Reason.CANCELLED)],
)
def test_a_job_that_ended_early_is_no_reason_for_a_request(state: JobState, reason: Reason | None) -> None:
    usage = used(state=state, reason=reason, **{"used.memory": _GIB})

    assert (usage.suggested_time, usage.suggested_memory, usage.is_telling) == (None, None, False)
    assert usage.time == Amount(requested=600, used=60)


@pytest.mark.parametrize(("minutes", "suggested"), [(1, 2), (1.5, 2), (5, 6), (None, 2)])
def test_a_job_that_reached_its_walltime_needs_more(minutes: float | None, suggested: int) -> None:
    usage = used(minutes, state=JobState.FAILED, reason=Reason.TIMEOUT, **{"used.memory": _GIB})

    assert usage.suggested_time == timedelta(minutes=suggested)
    assert usage.suggested_memory is None
    assert minutes is None or usage.time.is_better(suggested * 60)


@pytest.mark.parametrize("measured", ["used.memory", "used.process_memory", "nothing"])
def test_a_job_that_ran_out_of_memory_needs_more(measured: str) -> None:
    usage = used(memory=_GIB, state=JobState.FAILED, reason=Reason.OUT_OF_MEMORY, **{measured: _GIB / 2})

    assert usage.suggested_memory == 1229 << 20
    assert usage.memory.is_better(1229 << 20)
    assert usage.suggested_time is None


def test_figures_of_the_accounting_complete_those_of_the_job(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ends = JobStatus(JobState.COMPLETED, time=THEN + timedelta(seconds=60), metadata={"used.cpu": 6.0})
    jobs = [stored_job(name, markers=[active_marker(name, 0)], final=encode_status(ends)) for name in "abc"]
    answers = {"a": {"used.memory": _GIB, "used.cpu": 9.0}, "c": SubmitException("sacct: no answer")}
    monkeypatch.setattr(job_store, "account", lambda _: answers)

    usages = complete_usages(jobs)

    assert [(it.memory.used, it.cpu) for it in usages] == [(_GIB, 9.0), (None, 6.0), (None, 6.0)]
    told = capfd.readouterr().err
    assert "what its jobs have used cannot be asked for: sacct: no answer" in told


def test_the_time_is_compared_with_the_limit_that_the_batch_system_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = JobStatus(JobState.COMPLETED, time=THEN + timedelta(seconds=12))
    origins = (SLURM, Origin("nosuch", "", SLURM.path))
    jobs = [
        stored_job("a", markers=[active_marker("a", 0)], final=encode_status(ends), origin=it)
        for it in origins
    ]
    for job in jobs:
        job.__dict__["spec"] = JobSpec("a", attributes=JobAttributes(duration=timedelta(seconds=5)))
    monkeypatch.setattr(job_store, "account", lambda _: {})

    of_slurm, of_another = complete_usages(jobs)

    assert of_slurm.time == Amount(requested=60, used=12)
    # its plugin is not there to say how it rounds
    assert of_another.time == Amount(requested=5, used=12)


def test_memory_is_described_if_both_numbers_are_known() -> None:
    whole = Amount(requested=64 * _GIB, used=3.1 * _GIB)

    assert describe_memory(whole) == "memory: it requested 64G, and used 3.1G"
    assert describe_memory(Amount(requested=_GIB, used=_GIB / 2, is_least=True)).endswith("at least 512M")
    assert describe_memory(Amount(used=_GIB)) == describe_memory(Amount(requested=_GIB)) == ""


def test_jobs_that_have_ended_are_shown_with_what_they_used(run: Run) -> None:
    assert run("run", "--name", "a", "--time", "10h", "--memory", "4G", "--", "true").returncode == 0

    (shown,) = json.loads(run("usage", "a", "--json").stdout)
    table = run("usage", "--since", "1h").stdout.decode().splitlines()

    assert (shown["state"], shown["wall_time"]["requested"]) == ("COMPLETED", 36_000)
    assert shown["memory"]["requested"] == 4 * _GIB
    assert table[0].split() == ["ID", "NAME", "STATE", "TIME", "CORES", "MEMORY", "SUGGESTION"]
    assert "of 10h0m" in table[1]
    assert table[1].endswith("--time 1m")


def test_the_elements_of_an_array_have_their_index(run: Run) -> None:
    assert run("submit", "--array", "3-4", "--name", "many", "--", "true").returncode == 0
    assert run("wait", "many").returncode == 0

    heading, *rows = run("usage", "many").stdout.decode().splitlines()

    assert heading.split()[:4] == ["ID", "INDEX", "NAME", "STATE"]
    assert [row.split()[1:4] for row in rows] == [[index, "many", "COMPLETED"] for index in "34"]
    assert [it["array_index"] for it in json.loads(run("usage", "many", "--json").stdout)] == [3, 4]


def test_named_jobs_that_have_not_ended_are_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    running = stored_job("a1", name="rr", markers=[active_marker("a1", 0)])
    jobs = [running, *map(stored_job, ("b1", "b2", "b3"))]
    monkeypatch.setattr(usage_module, "listed_jobs", lambda: jobs)
    # no executor knows them
    monkeypatch.setattr(usage_module, "settle_ends", lambda found: found)

    assert usage_module.usage(jobs=["a1"], since=None, as_json=False) == 0
    one = capfd.readouterr()
    assert usage_module.usage(jobs=["a1", "b1", "b2", "b3"], since=None, as_json=True) == 0
    several = capfd.readouterr()
    assert usage_module.usage(jobs=[], since="7d", as_json=False) == 0

    assert (one.out, one.err) == ("", "jpsi: rr has not ended, and is left out: it is ACTIVE\n")
    assert several.err.endswith("jpsi: 4 jobs have not ended, and are left out: rr, b1, b2 and 1 more\n")
    assert capfd.readouterr() == ("", "")


def test_a_job_requests_what_another_used(run: Run) -> None:
    assert run("run", "--name", "a", "--time", "10h", "--memory", "4G", "-n2", "--", "true").returncode == 0

    def requested(*options: str) -> JobAttributes:
        job_id = run("submit", "--like", "a", *options, "--", "true").stdout.decode().strip()
        (document,) = (json.loads(run("show", "--document", "--json", job_id).stdout),)
        return document["attributes"]["system"]

    assert requested()["duration"] == 60
    assert requested()["jpsi"]["resources"]["memory"] == 4 * _GIB
    assert requested("--time", "5m")["duration"] == 300


def test_several_jobs_read_the_stored_jobs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read() -> list[StoredJob]:
        reads.append(1)
        return [stored_job("a1")]

    monkeypatch.setattr(stored_jobs_package, "listed_jobs", read)
    documents = [JobSpec("a"), JobSpec("b")]

    specs = make_specs(documents, [], {"like": "a1", "processes": "2"}, is_expanding=False)

    assert [it.executable for it in specs] == ["a", "b"]
    assert specs[0].resources == specs[1].resources == ResourceSpecV1(process_count=2)
    assert specs[0].resources is not specs[1].resources
    assert len(reads) == 1


def test_a_job_that_failed_early_is_requested_as_it_was(run: Run) -> None:
    assert run("run", "--name", "a", "--time", "10h", "--", "false").returncode == 1

    told = run("usage", "a")
    submitted = run("submit", "--like", "a", "--", "true")

    assert told.stdout.decode().splitlines()[1].endswith(" -")
    assert b"no suggestion for 1 job that failed or was cancelled" in told.stderr
    document = json.loads(run("show", "--document", "--json", submitted.stdout.decode().strip()).stdout)
    assert document["attributes"]["system"]["duration"] == 36_000
    assert b"--like: a has not completed" in submitted.stderr


def test_jobs_or_a_time_must_be_named(run: Run) -> None:
    result = run("usage")

    assert (result.returncode, result.stdout) == (2, b"")
    assert b"name jobs, or a time: --since 7d" in result.stderr
