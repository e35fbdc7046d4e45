"""Every document of the language runs to its end here, and on every batch system that can be played."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from example_runs import HERE, PLAYED, check_ended, check_order, runnable, told
from jobspec_support import INVALID, SYSTEMS, VALID, driven
from jpsi_engine import job_store
from jpsi_jobspec.planning.plan import Kind
from jpsi_jobspec.run_store.journal import Journal

Log = Callable[[], list[str]]


def output(journal: Journal, name: str) -> str:
    """What the first replica of an entry has written."""
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
    """What was to run ran, as often and in the order that the document says, and where."""
    place = HERE if system == "local" else PLAYED

    journal = driven(runnable(name, place, tmp_path), system, tmp_path)

    check_ended(journal)
    check_order(name, place, log())
    home = tmp_path / ("pennant" if name == "14-cwd" else "home")
    assert {directory for _, directory in told(log(), "directory")} <= {str(home)}
    if name == "01-setup-and-run":
        assert output(journal, "task-2") == "hello from my job\n"
        assert (home / "job.sh").read_text() == "#!/bin/bash\necho hello from my job\n"
    if system != "local":
        check_jobs(journal, told(log(), "job"))


def check_jobs(journal: Journal, places: list[tuple[str, str]]) -> None:
    """See that what is in a group ran in one job, and nothing else ran in the job of another task."""
    entries = {inner.id: it for it in journal.plan.entries for inner in it.walk()}
    jobs: dict[str, set[str]] = {}
    for task, job in places:
        jobs.setdefault(entries[task].id, set()).add(job)
    assert "none" not in {it for found in jobs.values() for it in found}
    assert sum(map(len, jobs.values())) == len(set().union(*jobs.values()))
    groups = {it.id for it in journal.plan.entries if it.kind is Kind.ALLOCATION}
    assert {len(found) for name, found in jobs.items() if name in groups} <= {1}


@pytest.mark.clause("ng-examples")
def test_those_that_are_not_valid_have_twins_that_are() -> None:
    assert {f"{name}-mended" for name in INVALID} <= set(VALID)
