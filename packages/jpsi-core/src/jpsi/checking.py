"""Asks all who may object to a job before it is submitted, and says everything that is wrong at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from jpsi.contract.hookspecs import Capabilities, Site
from jpsi.contract.protocols import Submission
from jpsi.dependencies import resolved
from jpsi.engine.grouping import shape
from jpsi.engine.prechecks import staged
from jpsi.engine.staging import has_staging
from jpsi.model import plain
from jpsi.model.errors import InvalidJobException
from jpsi.model.problems import problems, sound_part
from jpsi.model.spec import JobSpec, copy_spec

if TYPE_CHECKING:
    from jpsi.contract.hookspecs import ExecutorHooks
    from jpsi.contract.protocols import Engine
    from jpsi.contract.shell import ShellLine
    from jpsi.job import Job
    from jpsi.launcher import Launchers
    from jpsi.registry.spec_defaults import SpecDefaults

T = TypeVar("T")

_SUBJECT = "the job"
_NO_NODES: Sequence[ShellLine] = ()


class Checking:
    """The checks before one submission, of one job or of many.

    Args:
        hooks: the backend's.
        engine: what will carry out the jobs.
        site: where they are to run.
        defaults: what the configuration sets for jobs that leave it open.
        launchers: those that there are.
        is_here: whether a job that another waits for is one of the same batch system.
        warn: tells of what in a valid spec is probably a mistake.
        asks_once: whether what is answered alike for jobs that are alike is asked for the first alone.
        has_policy: whether somebody else than the backend checks specs too, who may look at all of each.
        is_elsewhere: whether jobs have files of another machine.
    """

    def __init__(  # noqa: PLR0913  who is asked, each by name
        self,
        *,
        hooks: ExecutorHooks,
        engine: Engine,
        site: Site,
        defaults: SpecDefaults,
        launchers: Launchers,
        is_here: Callable[[Job], bool],
        warn: Callable[[JobSpec], None],
        asks_once: bool = False,
        has_policy: bool = True,
        is_elsewhere: bool = False,
    ) -> None:
        self._hooks = hooks
        self._engine = engine
        self._site = site
        self._defaults = defaults
        self._launchers = launchers
        self._is_here = is_here
        self._warn = warn
        self._asks_once = asks_once
        self._has_policy = has_policy
        self._is_elsewhere = is_elsewhere
        self._objections: dict[str, list[str]] = {}
        self._known: dict[str, tuple[list[str], Sequence[ShellLine]]] = {}

    @functools.cached_property
    def _capabilities(self) -> Capabilities:
        return self._hooks.capabilities(site=self._site)

    def submission(self, job: Job, attempt: int) -> Submission:
        """What the engine needs to submit a job.

        Raises:
            InvalidJobException: the job can never run here as it is.
        """
        if job.spec is None:
            msg = f"job {job.id} has no spec"
            raise InvalidJobException(msg)
        found = problems(job.spec)
        # What is wrong here is said together with what is wrong anywhere.
        spec = self._defaults.filled_in(sound_part(job.spec) if found else copy_spec(job.spec))
        spec, unstaged = staged(spec, is_elsewhere=self._is_elsewhere)
        found += unstaged
        launcher, missing = self._launchers.of(spec)
        found += missing
        spec, unresolved = resolved(spec, self._capabilities.dependencies, self._is_here)
        found += unresolved
        encoded = plain.encode(spec) if self._asks_once and not found else None
        key = None if encoded is None else shape(encoded)
        objections = _once(self._objections, None if self._has_policy else key, self._never, spec)
        found += objections
        if found:
            here, nodes = self._engine.problems(spec), _NO_NODES
        else:
            # what one job brings along may be what another lacks
            here, nodes = _once(self._known, None if has_staging(spec) else key, self._now, spec)
        found += here
        if launcher is not None:
            found += _flat(launcher.hooks.check_spec(spec=spec))
        if found or launcher is None:
            # what a backend checks and then cannot write into a script is one mistake
            raise InvalidJobException.of(_SUBJECT, list(dict.fromkeys(found)))
        self._warn(spec)
        return Submission(
            job_id=job.id,
            attempt=attempt,
            spec=spec,
            launch=list(launcher.hooks.launch(spec=spec)),
            rank_variables=launcher.rank_variables,
            sources_scripts=launcher.sources_scripts,
            nodes=nodes,
            plain=encoded,
        )

    def _never(self, spec: JobSpec) -> list[str]:
        """Why a spec can never run here."""
        return _flat(self._hooks.check_spec(spec=spec, site=self._site))

    def _now(self, spec: JobSpec) -> tuple[list[str], Sequence[ShellLine]]:
        """Why a spec cannot run here as things are now, and what names the nodes of its processes."""
        return self._engine.problems(spec), list(self._hooks.nodes(spec=spec, site=self._site))


def _once(known: dict[str, T], key: str | None, ask: Callable[[JobSpec], T], spec: JobSpec) -> T:
    """What is answered for a spec: it is asked for the first with a key alone, and for each without one."""
    if key is None:
        return ask(spec)
    if key not in known:
        known[key] = ask(spec)
    return known[key]


def _flat(answers: Iterable[Iterable[str]]) -> list[str]:
    """The answers of all layers."""
    return [problem for answer in answers for problem in answer]
