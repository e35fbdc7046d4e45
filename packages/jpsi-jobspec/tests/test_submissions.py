"""Retries of submissions that fail for now, and failures of those that are refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import begin_run
from jpsi import JobExecutor, JobState
from jpsi_jobspec.planning.plan import Entry
from jpsi_jobspec.reporting.run_report import explain_failures
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal
from jpsi_jobspec.running.driver import Driver
from jpsi_testing.fake import FakeScheduler

HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\ntasks:\n"
TWO = (
    f"{HEAD}- {{name: a, command: [spack, one], resources: r}}\n"
    "- {name: b, command: [ior, two], resources: r, depends_on: [a]}\n"
)
DOWN = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n"

Log = Callable[[], list[str]]
Fake = Callable[..., FakeScheduler]


def drive(journal: Journal, remarks: list[str], show: Callable[..., None] = lambda *_: None) -> Journal:
    """Drive a run to its end, with a clock that advances an hour per call, so that no pause takes time."""
    clock = itertools.count(step=3600)
    Driver(
        journal, JobExecutor(journal.plan.target), show, report=remarks.append, clock=lambda: next(clock)
    ).run()
    return runs.read_run(journal.path)


def states(journal: Journal) -> dict[str, list[str]]:
    return {name: [it.value for it in found] for name, found in journal.states.items()}


def test_submissions_that_fail_for_now_are_retried(tmp_path: Path, log: Log, fake_commands: Fake) -> None:
    fake_commands("slurm").faults.fail("sbatch", times=3, stderr=DOWN)
    remarks: list[str] = []

    journal = drive(begin_run(TWO, "slurm", tmp_path), remarks)

    assert states(journal) == {"a": ["COMPLETED"], "b": ["COMPLETED"]}
    assert [line.split()[1] for line in log() if line.startswith("begin")] == ["a", "b"]
    assert [it.rpartition("; ")[2] for it in remarks] == [f"trying again in {n} s" for n in (1, 2, 4)]
    assert "Unable to contact slurm controller" in remarks[0]


def test_many_failed_submissions_are_reported_once(tmp_path: Path, log: Log, fake_commands: Fake) -> None:
    fake_commands("slurm").faults.fail("sbatch", times=3, stderr=DOWN)
    remarks: list[str] = []
    text = HEAD + "".join(f"- {{name: {it}, command: spack, resources: r}}\n" for it in "abc")

    journal = drive(begin_run(text, "slurm", tmp_path), remarks)

    assert states(journal) == {it: ["COMPLETED"] for it in "abc"}
    (remark,) = remarks
    assert "3 jobs wait to be submitted; trying again in 1 s" in remark


def test_a_refused_job_fails_with_a_message(tmp_path: Path, log: Log, fake_commands: Fake) -> None:
    refusal = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination\n"
    fake_commands("slurm").faults.fail("sbatch", times=1, stderr=refusal)

    journal = drive(begin_run(TWO, "slurm", tmp_path), [])

    (a,), (b,) = journal.parts.values()
    assert (a.state, a.reason) == (JobState.FAILED, "submit")
    assert "Invalid account" in str(a.message)
    # no command knows a job that no batch system has
    assert re.fullmatch("submit: .*Invalid account[a-z /]*", explain_failures([a]))
    assert (b.state, b.reason) == (JobState.CANCELED, "dependency_failed")
    assert log() == []


def test_a_run_that_is_cancelled_while_its_jobs_wait_to_be_submitted_ends(
    tmp_path: Path, log: Log, fake_commands: Fake
) -> None:
    fake = fake_commands("slurm")
    fake.faults.fail("sbatch", times=None, stderr=DOWN)
    journal = begin_run(TWO, "slurm", tmp_path)

    class Remarks(list[str]):
        def append(self, remark: str) -> None:
            journal.cancel()

    drive(journal, Remarks())

    assert states(journal) == {"a": ["CANCELED"], "b": ["CANCELED"]}
    assert {parts[0].reason for parts in journal.parts.values()} == {"cancelled"}
    assert not fake.jobs


def test_a_failed_cancel_is_retried(tmp_path: Path, log: Log, fake_commands: Fake) -> None:
    fake = fake_commands("slurm")
    fake.faults.fail("scancel", times=2, stderr="scancel: error: Unable to contact slurm controller\n")
    remarks: list[str] = []
    text = f"{HEAD}- {{name: a, command: [sleep, '600'], resources: r}}\n"
    journal = begin_run(text, "slurm", tmp_path)

    def cancel(_: object, state: JobState) -> None:
        if state is JobState.ACTIVE:
            journal.cancel()

    drive(journal, remarks, cancel)

    assert states(journal) == {"a": ["CANCELED"]}
    assert [it.rpartition("; ")[2] for it in remarks] == ["trying again in 1 s", "trying again in 2 s"]


def test_jobs_of_a_killed_client_are_recovered_after_an_outage(
    tmp_path: Path, log: Log, fake_commands: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = fake_commands("slurm")
    journal = begin_run(TWO, "slurm", tmp_path)
    first = Driver(journal, JobExecutor("slurm"), lambda *_: None)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.submission.submission.SubmissionPipeline._record_native_id", killed)
        with pytest.raises(KeyboardInterrupt):
            first.run()
    journal.close()
    assert len(fake.jobs) == 1
    fake.faults.fail("squeue", times=1, stderr="slurm_load_jobs error: Unable to contact slurm controller\n")

    again = drive(runs.read_run(journal.path), [])

    assert states(again) == {"a": ["COMPLETED"], "b": ["COMPLETED"]}
    assert [line.split()[1] for line in log() if line.startswith("begin")] == ["a", "b"]


def test_no_dependency_directive_names_a_forgotten_job(tmp_path: Path, log: Log, fake_commands: Fake) -> None:
    """The batch system would take it for an end that may be no success."""
    fake = fake_commands("slurm")
    fake.slots, fake.keep = 0, 0
    journal = begin_run(TWO.replace("spack, one", "sh, -c, exit 3"), "slurm", tmp_path)

    def left(entry: Entry, state: JobState) -> None:
        if (entry.id, state) == ("a", JobState.QUEUED):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Driver(journal, JobExecutor("slurm"), left).run()
    journal.close()
    (job,) = fake.jobs
    fake.slots = 4
    assert fake.wait_for(lambda: job.state.final and not fake.listed())

    again = drive(runs.read_run(journal.path), [])

    assert states(again) == {"a": ["FAILED"], "b": ["CANCELED"]}
    assert again.parts["a"][0].exit_code == 3
    assert (len(fake.jobs), log()) == (1, [])


def test_no_job_is_queued_with_an_unsatisfiable_dependency(
    tmp_path: Path, log: Log, fake_commands: Fake
) -> None:
    """Some batch systems keep such a job for ever."""
    fake = fake_commands("lsf")
    fake.slots = 0
    remarks: list[str] = []
    text = (
        f"{HEAD}- {{name: a, command: 'false', resources: r}}\n"
        "- {name: b, command: spack, resources: r, depends_on: [a]}\n"
    )
    journal = begin_run(text, "lsf", tmp_path)

    def begin(entry: object, state: JobState) -> None:
        if getattr(entry, "id", "") == "b" and state is JobState.QUEUED:
            fake.slots = 4

    drive(journal, remarks, begin)

    assert states(journal) == {"a": ["FAILED"], "b": ["CANCELED"]}
    assert journal.parts["b"][0].reason == "dependency_failed"
    assert (len(fake.jobs), fake.log.count("bkill")) == (2, 1)
