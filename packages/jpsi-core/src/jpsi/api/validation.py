"""Checks a job before submission with all parts that may refuse it; reports all problems at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from jpsi.api.dependencies import resolved
from jpsi.contract import Site, Submission
from jpsi.model import (
    HeterogeneousResources,
    InvalidJobException,
    JobSpec,
    copy_spec,
    has_staging,
    plain_values,
    problems,
    shape,
    sound_part,
    staging_problems,
    with_absolute_places,
)

if TYPE_CHECKING:
    from jpsi.config import SpecDefaults
    from jpsi.contract import Engine, ExecutorHooks, ShellLine
    from jpsi.job import Job
    from jpsi.launcher import Launchers
    from jpsi.model import DependencyKind

_SUBJECT = "the job"
# The number of different jobs to remember; a program that submits more has no similar jobs to gain from it.
_REMEMBERED = 1000


@attrs.frozen(slots=True)
class _Answer:
    """The hooks' results that are the same for similar jobs."""

    #: Why such jobs can never run on this backend.
    problems: Sequence[str]
    #: Shell that prints the node names of their processes.
    nodes: Sequence[ShellLine] = ()


class KnownAnswers(dict[str, _Answer]):
    """Cached results, by the shape of jobs; valid as long as the site's facts stay the same."""


class Validation:
    """The checks before the submissions of one executor. Any thread may call its methods.

    Results about one job are reused for similar jobs, as far as they can never change: programs submit many
    jobs that differ in their arguments alone.

    Args:
        name: the name of the executor.
        hooks: the backend's hooks.
        engine: the engine that will run the jobs.
        site: returns the configuration and the probe's result.
        defaults: the configured values for fields that a job leaves open.
        launchers: the launchers of the executor.
        is_here: returns True if a job that another waits for belongs to the same batch system.
        warn: warns about probable mistakes in a valid spec.
        has_policy: True if an override checks specs, too, which may look at any field.
        is_elsewhere: True if the jobs' files are on a remote host.
    """

    def __init__(  # noqa: PLR0913  the parts that check, each by name
        self,
        *,
        name: str,
        hooks: ExecutorHooks,
        engine: Engine,
        site: Callable[[], Site],
        defaults: SpecDefaults,
        launchers: Launchers,
        is_here: Callable[[Job], bool],
        warn: Callable[[JobSpec], None],
        has_policy: bool,
        is_elsewhere: bool,
    ) -> None:
        self._name = name
        self._hooks = hooks
        self._engine = engine
        self._site = site
        self._defaults = defaults
        self._launchers = launchers
        self._is_here = is_here
        self._warn = warn
        self._has_policy = has_policy
        self._is_elsewhere = is_elsewhere
        self._known: tuple[Mapping[str, Any], KnownAnswers] = {}, KnownAnswers()

    def submission(self, job: Job, attempt: int, present: KnownAnswers | None = None) -> Submission:
        """Check a job, and return what the engine needs to submit it.

        Args:
            job: the job.
            attempt: the number of the attempt.
            present: the engine's results about other jobs of the same request, as things are now; None calls
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
        spec, unstaged = staged(spec, is_elsewhere=self._is_elsewhere)
        found += unstaged
        spec, unsuited = self._suited(spec, site)
        found += unsuited
        launcher, missing = self._launchers.of(spec)
        found += missing
        spec, unresolved = resolved(spec, lambda: self._offered(site), self._is_here)
        found += unresolved
        encoded = None if found else plain_values.encode(spec)
        if self._has_policy:
            found += self._objections(spec, site)
        key = None if found or encoded is None else shape(encoded)
        answer = _once(self._of(site), key, lambda: self._answer(spec, site, is_sound=key is not None))
        found += answer.problems
        # staged files differ between jobs of one shape: one job may stage in what another lacks
        present_key = None if has_staging(spec) else key
        found += _once(present, present_key, lambda: _Answer(self._engine.problems(spec))).problems
        if launcher is not None:
            found += _flat(launcher.hooks.check_spec(spec=spec))
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
            nodes=answer.nodes,
            plain=encoded,
        )

    def _of(self, site: Site) -> KnownAnswers:
        """Return the cached results about this site; an empty cache after the probe found something new."""
        offers, known = self._known
        if offers != site.offers or len(known) >= _REMEMBERED:
            known = KnownAnswers()
            self._known = site.offers, known
        return known

    def _answer(self, spec: JobSpec, site: Site, *, is_sound: bool) -> _Answer:
        objections = [] if self._has_policy else self._objections(spec, site)
        refused = objections + self._engine.refused(spec)
        if refused or not is_sound:
            return _Answer(refused)
        return _Answer([], list(self._hooks.nodes(spec=spec, site=site)))

    def _objections(self, spec: JobSpec, site: Site) -> list[str]:
        return _flat(self._hooks.check_spec(spec=spec, site=site))

    def _suited(self, spec: JobSpec, site: Site) -> tuple[JobSpec, list[str]]:
        """Return a spec that the hooks support, and the problem with resources that they do not support."""
        is_plain = not isinstance(spec.resources, HeterogeneousResources)
        if is_plain or self._hooks.capabilities(site=site).heterogeneous:
            return spec, []
        which = "use ResourceSpecV1, or another executor"
        problem = f"the executor {self._name} gives a job one kind of slot, not several; {which}"
        return attrs.evolve(spec, resources=None), [problem]

    def _offered(self, site: Site) -> frozenset[DependencyKind]:
        return self._hooks.capabilities(site=site).dependencies


def _once(known: KnownAnswers | None, key: str | None, ask: Callable[[], _Answer]) -> _Answer:
    """Return the cached result for the key, or compute it; without a key it is not cached."""
    if known is None or key is None:
        return ask()
    answer = known.get(key)
    if answer is None:
        answer = known[key] = ask()
    return answer


def _flat(answers: Iterable[Iterable[str]]) -> list[str]:
    """Return the problems of all layers as one list."""
    return [problem for answer in answers for problem in answer]


def staged(spec: JobSpec, *, is_elsewhere: bool = False) -> tuple[JobSpec, list[str]]:
    """Return the spec with absolute paths of staged files on this machine, and the problems with them.

    A missing source is no problem if the job has dependencies, since one of those jobs may make it.

    Args:
        spec: the spec.
        is_elsewhere: True if the job's own files are on a remote host.
    """
    if not has_staging(spec):
        return spec, []
    here = _current_directory()
    if found := list(staging_problems(spec, None if is_elsewhere else here)):
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
