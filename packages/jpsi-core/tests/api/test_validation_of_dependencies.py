"""Jobs that wait for others: the problems that validation finds without the batch system."""

from __future__ import annotations

import pytest

import jpsi
from jpsi import Dependency, DependencyKind, Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus
from jpsi.api.validation import resolved

EVERY = frozenset(DependencyKind)


def waiting(*after: Dependency | Job | str) -> JobSpec:
    return JobSpec("/bin/true", attributes=JobAttributes(after=list(after)))


def submitted(*states: JobState) -> Job:
    """Return a job in this state."""
    job = Job(JobSpec("/bin/true"))
    job._bind("7", 1)
    for state in states:
        job._statuses.append(JobStatus(state))
    return job


def after(spec: JobSpec) -> list[object]:
    assert spec.attributes is not None
    return list(spec.attributes.after or ())


def test_jobs_are_replaced_by_their_native_ids() -> None:
    spec, problems = resolved(
        waiting(submitted(JobState.QUEUED), Dependency("8", DependencyKind.ANY)),
        lambda: EVERY,
        lambda _: True,
    )

    assert (after(spec), problems) == ([Dependency("7"), Dependency("8", DependencyKind.ANY)], [])


def test_a_spec_without_dependencies_is_unchanged() -> None:
    spec = JobSpec("/bin/true")

    assert resolved(spec, frozenset, lambda _: False) == (spec, [])


def test_satisfied_dependencies_are_left_out() -> None:
    spec, problems = resolved(waiting(submitted(JobState.COMPLETED), "8"), lambda: EVERY, lambda _: True)

    assert (after(spec), problems) == ([Dependency("8")], [])


def test_all_problems_are_reported_at_once() -> None:
    failed, new, foreign = submitted(JobState.FAILED), Job(), submitted(JobState.ACTIVE)
    spec = waiting(failed, new, foreign, Dependency("8", DependencyKind.ANY))

    rest, problems = resolved(spec, lambda: frozenset({DependencyKind.OK}), lambda _: False)

    assert after(rest) == [], "nothing more is found wrong with what is wrong already"
    assert problems == [
        f"attributes.after waits for the job {failed.id} to complete, but it is FAILED",
        f"attributes.after names the job {new.id}, which must be submitted first",
        f"attributes.after names the job {foreign.id}, which was submitted to another batch system",
        "attributes.after: this executor has no dependency of the kind any, only ok",
    ]


def test_local_offers_no_dependencies() -> None:
    job = Job(waiting("7"))

    with pytest.raises(
        jpsi.InvalidJobException, match=r"no dependencies; leave it out, and call wait\(\) of that job first$"
    ):
        JobExecutor("local").submit(job)

    assert job.status.state is JobState.NEW
