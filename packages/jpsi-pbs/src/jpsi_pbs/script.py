"""What a job asks for: the `#PBS` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Protocol

import attrs

from jpsi.plugin import (
    Dependency,
    Directive,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    duration,
    empty_names,
    units,
    unsayable,
)

from .dependencies import dependency_options, dependency_problems
from .names import legal_name, tag_variables
from .options import Options, option_problems, with_custom

_MARK = "#PBS"
# Stands for the tag of a submission that is not made yet.
_SOME_TAG = "x" * 60
_SECOND = timedelta(seconds=1)


class Requests(Protocol):
    """In what PBS and Torque differ when jobs are described."""

    #: How the names of custom attributes begin.
    name: str

    def resources(self, resources: ResourceSpecV1) -> Options:
        """The options for what a job needs of the machine."""

    def queue(self, attributes: JobAttributes) -> str | None:
        """Where the job is sent."""

    def queue_problems(self, attributes: JobAttributes) -> Iterable[str]:
        """Why a job cannot be sent there."""


def script(spec: JobSpec, context: SubmitContext, system: Requests) -> Script:
    """The directives for a spec.

    Raises:
        ValueError: something cannot be said; `spec_problems` says so first.
    """
    options = _options(spec, context.site, system, context.tag, context.after)
    return Script([Directive.of(_MARK, *words, joint=" ") for words in _written(options)])


def spec_problems(spec: JobSpec, site: Site, system: Requests) -> Iterator[str]:
    """Why the batch system can never be asked for this, one sentence each."""
    yield from empty_names(spec)
    yield from dependency_problems(spec, system.name)
    yield from system.queue_problems(spec.attributes or JobAttributes())
    wrong = list(option_problems(spec, system.name))
    yield from wrong
    yield from _unsayable(_without_custom(spec) if wrong else spec, site, system)


def _without_custom(spec: JobSpec) -> JobSpec:
    attributes = attrs.evolve(spec.attributes or JobAttributes(), custom_attributes=None)
    return attrs.evolve(spec, attributes=attributes)


def _unsayable(spec: JobSpec, site: Site, system: Requests) -> Iterator[str]:
    try:
        options = _options(spec, site, system, _SOME_TAG)
    except ValueError as e:
        yield f"a custom attribute cannot be written down: {e}"
        return
    yield from unsayable(_MARK, _written(options), joint=" ")


def _written(options: Options) -> Iterator[tuple[str, str | None]]:
    """Options as qsub takes them: `-l walltime` with the value 60 is `-l` with the value `walltime=60`."""
    for option, value in options.items():
        letter, _, name = option.partition(" ")
        yield letter, f"{name}={value or ''}" if name else value


def _options(
    spec: JobSpec, site: Site, system: Requests, tag: str, after: Iterable[Dependency] = ()
) -> dict[str, str | None]:
    """The options of qsub; qsub(1B), OPTIONS."""
    attributes = spec.attributes or JobAttributes()
    limit, config = duration(spec, site.config), site.config
    resources = spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()
    wanted = {
        "-q": system.queue(attributes),
        "-A": attributes.project_name,
        "-l walltime": str(units(limit, _SECOND)) if limit else None,
        "-W umask": config.umask,
        "-r": None if config.rerun is None else "ny"[config.rerun],
    }
    options: dict[str, str | None] = {
        "-N": legal_name(spec.name),
        "-v": tag_variables(tag, spec.name),
        # Values with commas, quotes or backslashes do not all arrive when they stand in -v.
        "-V": None,
        # Otherwise the login shell reads the script, which may be any.
        "-S": "/bin/sh",
        # The runner opens the job's streams. A file that PBS cannot copy to its place keeps the job from
        # ending for half a minute, and one that it cannot open holds it.
        "-o": "/dev/null",
        "-e": "/dev/null",
        "-m": "n",
        **{option: value for option, value in wanted.items() if value is not None},
        **system.resources(resources),
        **dependency_options(after),
    }
    return with_custom(options, spec, system.name)
