"""Checks a job before submission with all parts that may refuse it; reports all problems at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from jpsi.contract import Site, Submission, dependencies
from jpsi.job import Job
from jpsi.model import (
    Dependency,
    DependencyKind,
    HeterogeneousResources,
    InvalidJobException,
    JobSpec,
    OtherJob,
    copy_spec,
    has_staging,
    problems,
    serialization,
    shape,
    sound_part,
    staging_problems,
    unmet,
    with_absolute_places,
)

if TYPE_CHECKING:
    from jpsi.config import SpecDefaults
    from jpsi.contract import Engine, ExecutorHooks, ShellLine
    from jpsi.launcher import Launchers

_SUBJECT = "the job"
# The number of different jobs to remember; a program that submits more has no similar jobs to gain from it.
_REMEMBERED = 1000


@attrs.frozen(slots=True)
class _CheckResult:
    """The hooks' results that are the same for similar jobs."""

    #: Why such jobs can never run on this backend.
    problems: Sequence[str]
    #: Shell that prints the node names of their processes.
    nodes: Sequence[ShellLine] = ()


class CheckCache(dict[str, _CheckResult]):
    """Cached results, by the shape of jobs; valid as long as the site's facts stay the same."""


@attrs.define(slots=True, kw_only=True, eq=False)
class Validation:
    """The checks before the submissions of one executor. Any thread may call its methods.

    Results about one job are reused for similar jobs, as far as they can never change: programs submit many
    jobs that differ in their arguments alone.
    """

    #: The name of the executor.
    _name: str
    #: The backend's hooks.
    _hooks: ExecutorHooks
    #: The engine that will run the jobs.
    _engine: Engine
    #: Returns the configuration and the probe's result.
    _site: Callable[[], Site]
    #: The configured values for fields that a job leaves open.
    _defaults: SpecDefaults
    _launchers: Launchers
    #: Returns True if a job that another waits for belongs to the same batch system.
    _is_same_system: Callable[[Job], bool]
    #: Warns about probable mistakes in a valid spec.
    _warn: Callable[[JobSpec], None]
    #: True if an override checks specs, too, which may look at any field.
    _has_policy: bool
    #: True if the jobs' files are on a remote host.
    _is_remote: bool
    #: The results about the site with these facts.
    _cache: tuple[Mapping[str, Any], CheckCache] = attrs.field(init=False, factory=lambda: ({}, CheckCache()))

    def submission(self, job: Job, attempt: int, cache: CheckCache | None = None) -> Submission:
        """Check a job, and return what the engine needs to submit it.

        Args:
            job: the job.
            attempt: the number of the attempt.
            cache: the engine's results about other jobs of the same request, as things are now; None calls
                the engine for this one.

        Raises:
            InvalidJobException: the job can never run on this backend as it is.
        """
        if job.spec is None:
            msg = f"job {job.id} has no spec"
            raise InvalidJobException(msg)
        site = self._site()
        found = problems(job.spec)
        # Problems on this backend are reported together with those on any backend.
        spec = self._defaults.filled_in(sound_part(job.spec) if found else copy_spec(job.spec))
        spec, unstaged = staged(spec, is_remote=self._is_remote)
        found += unstaged
        spec, unsuited = self._suited(spec, site)
        found += unsuited
        launcher, missing = self._launchers.of(spec)
        found += missing
        spec, unresolved = resolved(
            spec, lambda: self._hooks.capabilities(site=site).dependencies, self._is_same_system
        )
        found += unresolved
        encoded = None if found else serialization.encode(spec)
        if self._has_policy:
            found += self._objections(spec, site)
        key = None if found or encoded is None else shape(encoded)
        result = _cached(self._cache_of(site), key, lambda: self._check(spec, site, is_valid=key is not None))
        found += result.problems
        # staged files differ between jobs of one shape: one job may stage in what another lacks
        current_key = None if has_staging(spec) else key
        found += _cached(cache, current_key, lambda: _CheckResult(self._engine.problems(spec))).problems
        if launcher is not None:
            found += chain.from_iterable(launcher.hooks.check_spec(spec=spec))
        if found:
            # a problem that `check_spec` and the script's writer both report is listed once
            raise InvalidJobException.of(_SUBJECT, list(dict.fromkeys(found)))
        self._warn(spec)
        return Submission(
            job_id=job.id,
            attempt=attempt,
            spec=spec,
            launch=[] if launcher is None else list(launcher.hooks.launch(spec=spec)),
            rank_variables=() if launcher is None else launcher.rank_variables,
            sources_scripts=launcher is not None and launcher.sources_scripts,
            nodes=result.nodes,
            plain=encoded,
        )

    def _cache_of(self, site: Site) -> CheckCache:
        """Return the cached results about this site; an empty cache after the probe found something new."""
        offers, cache = self._cache
        if offers != site.offers or len(cache) >= _REMEMBERED:
            cache = CheckCache()
            self._cache = site.offers, cache
        return cache

    def _check(self, spec: JobSpec, site: Site, *, is_valid: bool) -> _CheckResult:
        found = [] if self._has_policy else self._objections(spec, site)
        found += self._engine.refused(spec)
        if found or not is_valid:
            return _CheckResult(found)
        return _CheckResult([], list(self._hooks.nodes(spec=spec, site=site)))

    def _objections(self, spec: JobSpec, site: Site) -> list[str]:
        return list(chain.from_iterable(self._hooks.check_spec(spec=spec, site=site)))

    def _suited(self, spec: JobSpec, site: Site) -> tuple[JobSpec, list[str]]:
        """Return a spec that the hooks support, and the problem with resources that they do not support."""
        is_plain = not isinstance(spec.resources, HeterogeneousResources)
        if is_plain or self._hooks.capabilities(site=site).heterogeneous:
            return spec, []
        which = "use ResourceSpecV1, or another executor"
        problem = f"the executor {self._name} gives a job one kind of slot, not several; {which}"
        return attrs.evolve(spec, resources=None), [problem]


def _cached(cache: CheckCache | None, key: str | None, check: Callable[[], _CheckResult]) -> _CheckResult:
    """Return the cached result for the key, or compute it; without a key it is not cached."""
    if cache is None or key is None:
        return check()
    if key not in cache:
        cache[key] = check()
    return cache[key]


def staged(spec: JobSpec, *, is_remote: bool = False) -> tuple[JobSpec, list[str]]:
    """Return the spec with absolute paths of staged files on this machine, and the problems with them.

    A missing source is no problem if the job has dependencies, since one of those jobs may make it.

    Args:
        spec: the spec.
        is_remote: True if the job's own files are on a remote host.
    """
    if not has_staging(spec):
        return spec, []
    here = _current_directory()
    if found := list(staging_problems(spec, None if is_remote else here)):
        return spec, found
    spec = with_absolute_places(spec, here, str(Path.home()))
    if spec.attributes.after:
        return spec, []
    return spec, [
        f"stage_in[{index}].source: {item.source!r} does not exist"
        for index, item in enumerate(spec.stage_in or ())
        if not os.path.lexists(item.source)
    ]


def _current_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  not resolved
    except FileNotFoundError:
        return "/"


def resolved(
    spec: JobSpec, offered: Callable[[], frozenset[DependencyKind]], is_same_system: Callable[[Job], bool]
) -> tuple[JobSpec, list[str]]:
    """Return the spec with dependencies on native ids only, without those that are satisfied already.

    Args:
        spec: a valid spec.
        offered: returns the kinds of dependency that the batch system supports.
        is_same_system: returns True if a job belongs to the same batch system.

    Returns:
        The spec, and the problems with its dependencies, one sentence each; a dependency with a problem is
        left out of the spec.
    """
    wanted = dependencies(spec)
    if not wanted:
        return spec, []
    kinds, found = offered(), list[str]()
    # A wrong dependency is left out, so that later checks report no problems that follow from it.
    after: list[Dependency | OtherJob | str] = []
    for dependency in wanted:
        job, native_id = dependency.job, dependency.native_id
        problem = _problem(dependency, kinds, is_same_system)
        if problem is not None:
            found.append(problem)
        elif native_id is not None and not (
            isinstance(job, Job) and dependency.kind.is_met(job.status.state)
        ):
            after.append(Dependency(native_id, dependency.kind))
    return attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, after=after)), found


def _problem(
    dependency: Dependency, offered: frozenset[DependencyKind], is_same_system: Callable[[Job], bool]
) -> str | None:
    job = dependency.job
    if dependency.kind not in offered:
        others = " or ".join(sorted(kind.value for kind in offered))
        instead = f"; it can for {others}" if others else ""
        asked = f"no job can wait here for the end of another ({dependency.kind.value})"
        return f"attributes.after: {asked}{instead}"
    if not isinstance(job, Job):
        return None
    if dependency.kind.is_met(job.status.state) is False:
        return unmet(dependency, job.id, job.status.state)
    if job.native_id is None:
        return f"attributes.after names the job {job.id}, which must be submitted first"
    if not is_same_system(job):
        return f"attributes.after names the job {job.id}, which was submitted to another batch system"
    return None
