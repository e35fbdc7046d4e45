"""The documents of the language, each run to its end on this machine and on every fake batch system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from example_runs import FAKE_SIZE, LOCAL_SIZE, begun_tasks, check_ended, check_order, runnable
from jobspec_support import INVALID, SYSTEMS, VALID, drive_run
from jpsi_engine import job_store
from jpsi_jobspec.planning.plan import Kind
from jpsi_jobspec.run_store.journal import Journal

Log = Callable[[], list[str]]


def output(journal: Journal, name: str) -> str:
    """Return the output of the first replica of an entry."""
    (job,) = [it for it in job_store.jobs() if it.id == journal.parts[name][0].job_id]
    found = job.output("stdout").read(0)
    assert found is not None
    return found.data.decode()


@pytest.mark.clause(
    "ng-examples",
    "ng-depends",
    "ng-standalone",
    "ng-order",
    "ng-group",
    "ng-local",
    "ng-nested",
    "ng-cwd",
    "ng-inherit",
    "ng-service",
)
@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
@pytest.mark.parametrize("name", VALID)
def test_a_document_of_the_language_runs_to_its_end(name: str, system: str, tmp_path: Path, log: Log) -> None:
    """The tasks ran as often and in the order that the document says, in the right jobs."""
    size = LOCAL_SIZE if system == "local" else FAKE_SIZE

    journal = drive_run(runnable(name, size, tmp_path), system, tmp_path)

    check_ended(journal)
    check_order(name, size, log())
    home = tmp_path / ("pennant" if name == "14-cwd" else "home")
    assert {directory for _, directory in begun_tasks(log(), "directory")} <= {str(home)}
    if name == "01-setup-and-run":
        assert output(journal, "task-2") == "hello from my job\n"
        assert (home / "job.sh").read_text() == "#!/bin/bash\necho hello from my job\n"
    if system != "local":
        check_jobs(journal, begun_tasks(log(), "job"))


def check_jobs(journal: Journal, places: list[tuple[str, str]]) -> None:
    """Check that the tasks of a group ran in one job, and no other task ran in the job of another."""
    entries = {inner.id: it for it in journal.plan.entries for inner in it.walk()}
    jobs: dict[str, set[str]] = {}
    for task, job in places:
        jobs.setdefault(entries[task].id, set()).add(job)
    assert "none" not in {it for found in jobs.values() for it in found}
    assert sum(map(len, jobs.values())) == len(set().union(*jobs.values()))
    groups = {it.id for it in journal.plan.entries if it.kind is Kind.ALLOCATION}
    assert {len(found) for name, found in jobs.items() if name in groups} <= {1}


@pytest.mark.clause("ng-examples")
def test_invalid_documents_have_corrected_twins() -> None:
    assert {f"{name}-mended" for name in INVALID} <= set(VALID)
