"""Checks a job before submission with all parts that may refuse it; reports all problems together."""

from __future__ import annotations

import difflib
import functools
import logging
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import attrs

from jpsi.api.system import System
from jpsi.contract import Engine, FileTransport, Queue, ShellLine, Site, Submission, Transport, dependencies
from jpsi.job import Job
from jpsi.launcher import Launcher, Launchers
from jpsi.layers import Assembly
from jpsi.model import (
    Dependency,
    DependencyKind,
    HeterogeneousResources,
    InvalidJobException,
    JobSpec,
    OtherJob,
    components,
    copy_spec,
    exec_limits,
    has_staging,
    problems,
    serialization,
    sound_part,
    staging_problems,
    with_absolute_places,
)
from jpsi.registry import EXECUTORS, LAUNCHERS, known_plugins

log = logging.getLogger(__name__)

# The number of different jobs to remember; a program that submits more has no similar jobs to gain from it.
_REMEMBERED = 1000
# Prefixes for parts of a job document that jpsi keeps and does not read.
_OF_DOCUMENTS = ("job", "count", "jpsi")


@attrs.frozen(slots=True)
class _CheckResult:
    """The hooks' results that are the same for similar jobs."""

    #: Why such jobs can never run on this backend.
    problems: Sequence[str]
    #: Shell that prints the node names of their processes.
    nodes: Sequence[ShellLine] = ()


@attrs.frozen(slots=True)
class _Draft:
    """A job on its way to the engine: its spec, its launcher, and the problems that were found so far."""

    spec: JobSpec
    launcher: Launcher | None
    problems: list[str]


# A submission, and a function that makes others with the same launch.
_Repeatable = tuple[Submission, Callable[..., Submission]]


@attrs.frozen(slots=True, eq=False)
class RequestCache:
    """The results of checks that jobs share: of those of one request, as things are now, or of all jobs."""

    #: The engine's results, by the shape of jobs; for all jobs, those that never change.
    results: dict[str, _CheckResult] = attrs.field(factory=dict)
    #: By the text of the specs' fields but the arguments, which tells 1 from True, and orders of keys.
    repeatable: dict[str, _Repeatable] = attrs.field(factory=dict)
    #: The queues, once they are known.
    queues: list[Queue] = attrs.field(factory=list)

    def result(self, key: str | None, check: Callable[[], _CheckResult]) -> _CheckResult:
        """Return the cached result for jobs of one shape, or compute it; without a shape it is not cached."""
        found = check() if key is None or key not in self.results else self.results[key]
        return found if key is None else self.results.setdefault(key, found)


_FIXED = [field.name for field in attrs.fields(JobSpec) if field.name != "arguments"]
_get_fixed = operator.attrgetter(*_FIXED)


@attrs.define(slots=True, eq=False)
class Validation:
    """The checks before the submissions of one executor. Any thread may call its methods.

    Results about one job are reused for similar jobs, as far as they can never change: programs submit many
    jobs that differ in their arguments alone.
    """

    _assembly: Assembly
    #: The engine that will run the jobs.
    _engine: Engine
    _system: System
    _launchers: Launchers = attrs.field()
    #: The systems that custom attributes may be for.
    _systems: frozenset[str] = attrs.field(init=False)
    #: The doubts about names of custom attributes of which a warning was given.
    _warned: set[str] = attrs.field(init=False, factory=set)
    #: The results about the site with these facts.
    _cache: tuple[Mapping[str, Any], RequestCache] = attrs.field(
        init=False, factory=lambda: ({}, RequestCache())
    )

    @_launchers.default
    def _executors_launchers(self) -> Launchers:
        return Launchers(self._assembly.plugins, lambda: self._system.capabilities)

    @_systems.default
    def _known_systems(self) -> frozenset[str]:
        groups = (EXECUTORS, LAUNCHERS)
        installed = (it.name.lower() for it in self._assembly.plugins.candidates if it.group in groups)
        return frozenset(installed).union(_OF_DOCUMENTS, *map(known_plugins, groups))

    def submission(self, job: Job, attempt: int, cache: RequestCache | None = None) -> Submission:
        """Check a job, and return what the engine needs to submit it; InvalidJobException if it never can.

        The cache has the results about other jobs of the same request; None calls the engine for this job.
        """
        if job.spec is None:
            raise InvalidJobException(f"job {job.id} has no spec")
        cache = RequestCache() if cache is None else cache
        fixed = repr(_get_fixed(job.spec)) if isinstance(job.spec, JobSpec) else ""  # type: ignore[redundant-expr]
        if (again := _repeat(cache.repeatable.get(fixed), job, attempt)) is not None:
            return again
        site = self._system.site()
        lasting = self._cache_of(site)
        again = _repeat(lasting.repeatable.get(fixed), job, attempt)
        # only what the engine checks changes with time
        if again is not None and not self._engine.problems(again.spec):
            again = attrs.evolve(again, like=None)
            cache.repeatable[fixed] = again, lasting.repeatable[fixed][1]
            return again
        found = problems(job.spec)
        # Problems on this backend are reported together with those on any backend.
        spec = self._assembly.defaults.filled_in(sound_part(job.spec) if found else _own_spec(job.spec))
        is_auto = spec.attributes.queue_name == spec.attributes.AUTO_QUEUE
        draft = self._completed(spec, cache)
        draft.problems[:0] = found
        spec, launcher = draft.spec, draft.launcher
        encoded = None if draft.problems else serialization.encode(spec)
        nodes = self._check(draft, encoded, site, lasting, cache)
        self._warn(spec)
        make = functools.partial(
            Submission,
            launch=[] if launcher is None else list(launcher.hooks.launch(spec=spec)),
            rank_variables=() if launcher is None else launcher.rank_variables,
            sources_scripts=launcher is not None and launcher.sources_scripts,
            nodes=nodes,
        )
        submission = make(job_id=job.id, attempt=attempt, spec=spec, plain=encoded)
        # a policy may check the arguments, and files and other jobs may change
        is_fixed = not (self._assembly.has_policy or job.spec.attributes.after or has_staging(spec))
        if is_fixed and len(cache.repeatable) < _REMEMBERED:
            # the limits of queues may change
            for each in (cache,) if is_auto else (cache, lasting):
                each.repeatable[fixed] = submission, make
        return submission

    def _completed(self, spec: JobSpec, cache: RequestCache) -> _Draft:
        """Return a spec with its queue, absolute paths and native ids, and with its launcher."""
        found: list[str] = []
        if spec.attributes.queue_name == spec.attributes.AUTO_QUEUE:
            spec, unplaced = self._placed(spec, cache)
            found += unplaced
        spec, unstaged = staged(spec, self._system.transport)
        spec, unsuited = self._suited(spec)
        found += [*unstaged, *unsuited]
        if spec.attributes.retry and not self._engine.retries:
            found.append("attributes.retry: this executor does not submit jobs again")
        launcher, missing = self._launchers.of(spec)
        spec, unresolved = resolved(
            spec, lambda: self._system.capabilities.dependencies, self._is_same_system
        )
        return _Draft(spec, launcher, [*found, *missing, *unresolved])

    def _check(
        self,
        draft: _Draft,
        encoded: Mapping[str, Any] | None,
        site: Site,
        lasting: RequestCache,
        cache: RequestCache,
    ) -> Sequence[ShellLine]:
        """Return the shell that prints the nodes of a job, or raise one error for all of its problems."""
        spec, found = draft.spec, draft.problems
        if self._assembly.has_policy:
            found += self._objections(spec, site)
        key = None if found or encoded is None else serialization.shape(encoded)
        result = lasting.result(key, lambda: self._ask(spec, site, is_valid=key is not None))
        # staged files differ between jobs of one shape: one job may stage in what another lacks
        current_key = None if has_staging(spec) else key
        current = cache.result(current_key, lambda: _CheckResult(self._engine.problems(spec)))
        found += [*result.problems, *current.problems]
        # users do not know the launcher that a job would get which its executor refuses
        if draft.launcher is not None and (spec.launcher is not None or not result.problems):
            found += chain.from_iterable(draft.launcher.hooks.check_spec(spec=spec))
        if found:
            # a problem that `check_spec` and the script's writer both report is listed once
            raise InvalidJobException.of("the job", list(dict.fromkeys(found)))
        return result.nodes

    def _cache_of(self, site: Site) -> RequestCache:
        """Return the cached results about this site; an empty cache after the probe found something new."""
        offers, cache = self._cache
        if offers != site.offers or max(len(cache.results), len(cache.repeatable)) >= _REMEMBERED:
            cache = RequestCache()
            self._cache = site.offers, cache
        return cache

    def _placed(self, spec: JobSpec, cache: RequestCache) -> tuple[JobSpec, Sequence[str]]:
        """Return a spec with the queue that the engine chooses, or the problems with that."""

        def queues() -> Sequence[Queue]:
            if not cache.queues:
                cache.queues.extend(self._system.queues())
            return cache.queues

        return self._engine.choose_queue(spec, queues)

    def _ask(self, spec: JobSpec, site: Site, *, is_valid: bool) -> _CheckResult:
        """Return what the hooks and the engine say of a spec, which is the same for similar jobs."""
        found = [] if self._assembly.has_policy else self._objections(spec, site)
        found += self._engine.refused(spec)
        if found or not is_valid:
            return _CheckResult(found)
        return _CheckResult([], list(self._assembly.hooks.nodes(spec=spec, site=site)))

    def _objections(self, spec: JobSpec, site: Site) -> list[str]:
        return list(chain.from_iterable(self._assembly.hooks.check_spec(spec=spec, site=site)))

    def _suited(self, spec: JobSpec) -> tuple[JobSpec, list[str]]:
        """Return a spec that the hooks support, and the problem with resources that they do not support."""
        is_plain = not isinstance(spec.resources, HeterogeneousResources)
        if is_plain or self._system.capabilities.heterogeneous:
            return spec, []
        why = f"the executor {self._system.name} gives a job one kind of slot, not several"
        return attrs.evolve(spec, resources=None), [f"{why}; use ResourceSpecV1, or another executor"]

    def _warn(self, spec: JobSpec) -> None:
        """Warn, once each, about a probable mistake that does not keep the job from running."""
        names = spec.attributes.custom_attributes or ()
        for doubt in doubts(names, self._systems, self._system.name):
            if doubt not in self._warned:
                self._warned.add(doubt)
                log.warning("%s", doubt)

    def _is_same_system(self, job: Job) -> bool:
        """Return True if a job of any executor belongs to the batch system of this one."""
        return job.executor is not None and job.executor._assembly.identity == self._assembly.identity  # noqa: SLF001  internal to jpsi


def _own_spec(spec: JobSpec) -> JobSpec:
    """Return a copy of a valid spec, with the memory of the whole job."""
    spec = copy_spec(spec)
    for part in components(spec.resources):
        part.memory, part.memory_per_cpu, part.memory_per_gpu = part.computed_memory, None, None
    return spec


def _repeat(repeatable: _Repeatable | None, job: Job, attempt: int) -> Submission | None:
    """Return the submission of a job that differs in its arguments at most; None if they must be checked."""
    if repeatable is None:
        return None
    like, make = repeatable
    spec, plain, arguments = like.spec, like.plain or {}, job.spec and job.spec.arguments
    if arguments is not None and type(arguments) is not list:
        return None
    if not all(type(it) is str and it.isascii() and "\0" not in it for it in arguments or ()):
        return None
    if arguments != spec.arguments:
        spec = attrs.evolve(spec, arguments=None if arguments is None else [*arguments])
        if any(exec_limits(spec)):
            return None
        plain = {**plain, "arguments": spec.arguments}
    return make(job_id=job.id, attempt=attempt, spec=spec, plain=plain, like=like)


def doubts(names: Iterable[str], known: frozenset[str], executor: str) -> Iterator[str]:
    """Yield a sentence for each custom attribute whose name is probably mistyped.

    Attributes for another known system, or with a prefix of a site's own, are not reported.

    >>> list(doubts(["slurm.qos", "slrum.qos", "qos", "ours.x"], frozenset({"slurm"}), "slurm"))
    ["no plugin reads the custom attribute 'slrum.qos'; did you mean 'slurm.qos'?", \
"no plugin reads the custom attribute 'qos'; did you mean 'slurm.qos'?"]
    """
    for name in names:
        system, dot, option = name.partition(".")
        if not dot:
            meant = [f"{executor}.{name}"]
        elif system.lower() in known:
            meant = []
        else:
            meant = [f"{it}.{option}" for it in difflib.get_close_matches(system.lower(), known, n=1)]
        yield from (f"no plugin reads the custom attribute {name!r}; did you mean {it!r}?" for it in meant)


def staged(spec: JobSpec, transport: Transport | None = None) -> tuple[JobSpec, list[str]]:
    """Return the spec with absolute paths of staged files on this machine, and the problems with them.

    A missing source is no problem if the job has dependencies, since one of those jobs may make it. The job's
    own files may be on a remote host.
    """
    if not has_staging(spec):
        return spec, []
    try:
        here = os.getcwd()  # noqa: PTH109  not resolved
    except FileNotFoundError:
        here = "/"
    if found := list(staging_problems(spec, None if isinstance(transport, FileTransport) else here)):
        return spec, found
    spec = with_absolute_places(spec, here, str(Path.home()))
    if spec.attributes.after:
        return spec, []
    return spec, [
        f"stage_in[{index}].source: {item.source!r} does not exist"
        for index, item in enumerate(spec.stage_in or ())
        if not os.path.lexists(item.source)
    ]


def resolved(
    spec: JobSpec, offered: Callable[[], frozenset[DependencyKind]], is_same_system: Callable[[Job], bool]
) -> tuple[JobSpec, list[str]]:
    """Return a valid spec with unsatisfied dependencies on native ids only, and the problems with the others.

    `offered` returns the kinds that the batch system supports. One with a problem is left out of the spec.
    """
    wanted = dependencies(spec)
    if not wanted:
        return spec, []
    kinds, found = offered(), list[str]()
    # A wrong dependency is left out, so that later checks report no problems that follow from it.
    after: list[Dependency | OtherJob | str] = []
    for dependency in wanted:
        job, native_id, kind = dependency.job, dependency.native_id, dependency.kind
        if problem := _problem(dependency, kinds, is_same_system):
            found.append(problem)
        elif native_id is not None and not (isinstance(job, Job) and kind.is_met(job.status.state)):
            after.append(Dependency(native_id, kind))
    return attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, after=after)), found


def _problem(
    dependency: Dependency, offered: frozenset[DependencyKind], is_same_system: Callable[[Job], bool]
) -> str | None:
    job = dependency.job
    if dependency.kind not in offered:
        others = " and ".join(sorted(kind.value for kind in offered))
        missing = f"dependency of the kind {dependency.kind.value}, only {others}"
        none = "dependencies; leave it out, and call wait() of that job first"
        return f"attributes.after: this executor has no {missing if others else none}"
    if not isinstance(job, Job):
        return None
    if dependency.kind.is_met(job.status.state) is False:
        return dependency.describe_unmet(job.id, job.status.state)
    if job.native_id is None:
        return f"attributes.after names the job {job.id}, which must be submitted first"
    if not is_same_system(job):
        return f"attributes.after names the job {job.id}, which was submitted to another batch system"
    return None
