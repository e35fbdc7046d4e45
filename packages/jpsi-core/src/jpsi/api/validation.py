"""Asks all who may object to a job before it is submitted, and says everything that is wrong at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from jpsi.api.dependencies import resolved
from jpsi.contract import RefusingEngine, Site, Submission
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
# That many different jobs are remembered; more than that differ in what keeps them from being alike at all.
_REMEMBERED = 1000


@attrs.frozen(slots=True)
class _Answer:
    """What is answered alike for jobs that are alike."""

    #: Why they can never run here.
    problems: Sequence[str]
    #: What names the nodes of their processes.
    nodes: Sequence[ShellLine] = ()


class Known(dict[str, _Answer]):
    """What was answered already, by what jobs have in common; for as long as what is asked about stays."""


class Checking:
    """The checks before the submissions of one executor. Methods may be called from any thread.

    What was answered about one job counts for those that are alike, as far as it can never change: programs
    submit many jobs that differ in their arguments alone.

    Args:
        name: the name of the executor.
        hooks: the backend's.
        engine: what will carry out the jobs.
        site: where they are to run.
        defaults: what the configuration sets for jobs that leave it open.
        launchers: those that there are.
        is_here: whether a job that another waits for is one of the same batch system.
        warn: tells of what in a valid spec is probably a mistake.
        has_policy: whether somebody else than the backend checks specs too, who may look at all of each.
        is_elsewhere: whether jobs have files of another machine.
    """

    def __init__(  # noqa: PLR0913  who is asked, each by name
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
        self._refuses = engine.refused if isinstance(engine, RefusingEngine) else _nothing
        self._known: tuple[Mapping[str, Any], Known] = {}, Known()

    def submission(self, job: Job, attempt: int, present: Known | None = None) -> Submission:
        """What the engine needs to submit a job.

        Args:
            job: the job.
            attempt: which attempt of it.
            present: what was answered about other jobs of the same request as things are now; None asks
                about this one.

        Raises:
            InvalidJobException: the job can never run here as it is.
        """
        if job.spec is None:
            msg = f"job {job.id} has no spec"
            raise InvalidJobException(msg)
        site = self._site()
        found = problems(job.spec)
        # What is wrong here is said together with what is wrong anywhere.
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
        # what one job brings along may be what another lacks
        present_key = None if has_staging(spec) else key
        found += _once(present, present_key, lambda: _Answer(self._engine.problems(spec))).problems
        if launcher is not None:
            found += _flat(launcher.hooks.check_spec(spec=spec))
        if found:
            # what a backend checks and then cannot write into a script is one mistake
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

    def _of(self, site: Site) -> Known:
        """What was answered already about this site; nothing, once more was found out about it."""
        offers, known = self._known
        if offers != site.offers or len(known) >= _REMEMBERED:
            known = Known()
            self._known = site.offers, known
        return known

    def _answer(self, spec: JobSpec, site: Site, *, is_sound: bool) -> _Answer:
        objections = [] if self._has_policy else self._objections(spec, site)
        refused = objections + self._refuses(spec)
        if refused or not is_sound:
            return _Answer(refused)
        return _Answer([], list(self._hooks.nodes(spec=spec, site=site)))

    def _objections(self, spec: JobSpec, site: Site) -> list[str]:
        return _flat(self._hooks.check_spec(spec=spec, site=site))

    def _suited(self, spec: JobSpec, site: Site) -> tuple[JobSpec, list[str]]:
        """What the hooks are asked about, and what is wrong with having them asked about more."""
        is_plain = not isinstance(spec.resources, HeterogeneousResources)
        if is_plain or self._hooks.capabilities(site=site).heterogeneous:
            return spec, []
        which = "use ResourceSpecV1, or another executor"
        problem = f"the executor {self._name} gives a job one kind of slot, not several; {which}"
        return attrs.evolve(spec, resources=None), [problem]

    def _offered(self, site: Site) -> frozenset[DependencyKind]:
        return self._hooks.capabilities(site=site).dependencies


def _once(known: Known | None, key: str | None, ask: Callable[[], _Answer]) -> _Answer:
    """What is answered: it is asked for the first with a key alone, and for each without one."""
    if known is None or key is None:
        return ask()
    answer = known.get(key)
    if answer is None:
        answer = known[key] = ask()
    return answer


def _nothing(spec: JobSpec) -> list[str]:
    del spec
    return []


def _flat(answers: Iterable[Iterable[str]]) -> list[str]:
    """The answers of all layers."""
    return [problem for answer in answers for problem in answer]


def staged(spec: JobSpec, *, is_elsewhere: bool = False) -> tuple[JobSpec, list[str]]:
    """Return a spec with absolute paths of what is staged here, and what is wrong there.

    A source that is not there is no problem if a job that this one waits for may make it.

    Args:
        spec: the spec.
        is_elsewhere: whether the job's own files are not those of this machine.
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
