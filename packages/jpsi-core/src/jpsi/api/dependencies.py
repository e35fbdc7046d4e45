"""What the jobs that a job waits for come to when it is submitted."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi.contract import dependencies
from jpsi.job import Job
from jpsi.model import Dependency, DependencyKind, JobSpec, OtherJob, unmet


def resolved(
    spec: JobSpec, offered: Callable[[], frozenset[DependencyKind]], is_here: Callable[[Job], bool]
) -> tuple[JobSpec, list[str]]:
    """The spec with dependencies on native ids alone, without those that are satisfied already.

    Args:
        spec: a valid spec.
        offered: tells what the batch system can wait for.
        is_here: whether a job is one of the same batch system.

    Returns:
        The spec, and what is wrong with its dependencies, one sentence each; those are left out of it.
    """
    wanted = dependencies(spec)
    if not wanted:
        return spec, []
    kinds, problems = offered(), list[str]()
    # What is wrong here is left out, so that nobody finds it wrong for what follows from that.
    after: list[Dependency | OtherJob | str] = []
    for dependency in wanted:
        job, native_id = dependency.job, dependency.native_id
        problem = _problem(dependency, kinds, is_here)
        if problem is not None:
            problems.append(problem)
        elif native_id is not None and not (
            isinstance(job, Job) and dependency.kind.is_met(job.status.state)
        ):
            after.append(Dependency(native_id, dependency.kind))
    return attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, after=after)), problems


def _problem(
    dependency: Dependency, offered: frozenset[DependencyKind], is_here: Callable[[Job], bool]
) -> str | None:
    job = dependency.job
    if dependency.kind not in offered:
        others = " or ".join(sorted(kind.value for kind in offered))
        instead = f"; it can for {others}" if others else ""
        asked = f"no job can wait here for the end of another ({dependency.kind.value})"
        return f"attributes.after: {asked}{instead}"
    if not isinstance(job, Job):
        return None
    if job.status.final and dependency.kind.is_met(job.status.state) is False:
        return unmet(dependency, job.id, job.status.state)
    if job.native_id is None:
        return f"attributes.after names the job {job.id}, which must be submitted first"
    if not is_here(job):
        return f"attributes.after names the job {job.id}, which was submitted elsewhere"
    return None
