"""What a job asks of LSF: the `#BSUB` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta

import attrs

from jpsi.plugin import (
    Dependency,
    Directive,
    JobAttributes,
    JobSpec,
    Script,
    Site,
    SubmitContext,
    duration,
    empty_names,
    units,
    unsayable,
)

from .dependencies import dependency_options, dependency_problems
from .options import option_problems, with_custom
from .resources import resource_options, resource_problems

_MARK = "#BSUB"
_DEFAULT_NAME = "jpsi"
# bsub of LSF 10.1, -J and -Jd
_LONGEST = 4094
# Measured on volclava 2.2, which reads directives word by word
_MISREAD = re.compile(r"\A[ #]|  | \Z|\A\Z")
# lsb.queues of LSF 10.1, QUEUE_NAME; mbatchd of volclava 2.2 breaks the connection over longer ones
_LONGEST_QUEUE = 59
# Stands for the tag of a submission that is not made yet.
_SOME_TAG = "x" * 60


def script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec.

    Raises:
        ValueError: something cannot be said; `spec_problems` says so first.
    """
    options = _options(spec, context.site, context.tag, context.after)
    for problem in _misread(options.items()):
        raise ValueError(problem)
    return Script([Directive.of(_MARK, f"-{option}", value, joint=" ") for option, value in options.items()])


def spec_problems(spec: JobSpec, site: Site) -> Iterator[str]:
    """Why LSF can never be asked for this, one sentence each."""
    yield from empty_names(spec)
    yield from _name_problems(spec.name, (spec.attributes or JobAttributes()).queue_name)
    yield from resource_problems(spec.resources, site.config)
    yield from dependency_problems(spec)
    wrong = list(option_problems(spec))
    yield from wrong
    yield from _unsayable(_without_custom(spec) if wrong else spec, site)


def _name_problems(name: str | None, queues: str | None) -> Iterator[str]:
    if name is not None and "[" in name:
        yield f"name: LSF takes a name with a bracket, such as {name!r}, for an array of jobs"
    if any(len(queue) > _LONGEST_QUEUE for queue in (queues or "").replace("@", " ").split()):
        yield f"attributes.queue_name: no queue of LSF has a name of more than {_LONGEST_QUEUE} characters"


def _without_custom(spec: JobSpec) -> JobSpec:
    attributes = attrs.evolve(spec.attributes or JobAttributes(), custom_attributes=None)
    return attrs.evolve(spec, attributes=attributes)


def _unsayable(spec: JobSpec, site: Site) -> Iterator[str]:
    try:
        options = _options(spec, site, _SOME_TAG)
    except ValueError as e:
        yield f"a custom attribute cannot be written down: {e}"
        return
    named = [(f"-{option}", value) for option, value in options.items()]
    yield from unsayable(_MARK, named, joint=" ", longest=_LONGEST)
    yield from _misread(options.items())


def _misread(options: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Which values LSF would take for others, quoted or not, with all options that follow."""
    for option, value in options:
        if value is not None and _MISREAD.search(value):
            yield (
                f"-{option} cannot be {value!r}: LSF takes # at the beginning for a comment, "
                "drops blanks at both ends, and makes one of several"
            )


def _options(spec: JobSpec, site: Site, tag: str, after: Iterable[Dependency] = ()) -> dict[str, str | None]:
    """The options of bsub."""
    options: dict[str, str | None] = {
        "J": spec.name or _DEFAULT_NAME,
        "Jd": tag,
        # The runner opens the job's streams. Without a file LSF mails them, with one it adds a report, and
        # a directory that is not there is told by nothing.
        "o": "/dev/null",
        "e": "/dev/null",
        **_attributes(spec.attributes or JobAttributes()),
        **_time(duration(spec, site.config)),
        **resource_options(spec.resources, site.config),
        **({"r": None} if site.config.rerunnable else {}),
        **dependency_options(after),
    }
    return with_custom(options, spec)


def _attributes(attributes: JobAttributes) -> dict[str, str | None]:
    named = {
        "q": attributes.queue_name,
        "P": attributes.project_name,
        "U": attributes.reservation_id,
    }
    return {option: value for option, value in named.items() if value is not None}


def _time(limit: timedelta) -> dict[str, str | None]:
    """The run limit in whole minutes, the finest that -W can say; none leaves the queue's own."""
    return {"W": str(units(limit, timedelta(minutes=1)))} if limit else {}
