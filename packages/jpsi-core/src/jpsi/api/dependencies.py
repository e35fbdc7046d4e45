"""Resolves the dependencies of a job when it is submitted."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from jpsi.contract import dependencies
from jpsi.job import Job
from jpsi.model import Dependency, DependencyKind, JobSpec, OtherJob, unmet


def resolved(
    spec: JobSpec, offered: Callable[[], frozenset[DependencyKind]], is_here: Callable[[Job], bool]
) -> tuple[JobSpec, list[str]]:
    """Return the spec with dependencies on native ids only, without those that are satisfied already.

    Args:
        spec: a valid spec.
        offered: returns the kinds of dependency that the batch system supports.
        is_here: returns True if a job belongs to the same batch system.

    Returns:
        The spec, and the problems with its dependencies, one sentence each; a dependency with a problem is
        left out of the spec.
    """
    wanted = dependencies(spec)
    if not wanted:
        return spec, []
    kinds, problems = offered(), list[str]()
    # A wrong dependency is left out, so that later checks report no problems that follow from it.
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
