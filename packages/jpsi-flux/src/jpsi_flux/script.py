"""What a job asks of Flux: the `#flux:` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta

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
from .options import Option, custom, option_problems
from .shape import Shape

_MARK = "#flux:"
_SECOND = timedelta(seconds=1)
# Stands for the tag of a submission that is not made yet.
_SOME_TAG = "x" * 60


def script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec.

    Raises:
        ValueError: something cannot be said; `spec_problems` says so first.
    """
    options = _options(spec, context.site, context.tag, context.after)
    return Script([Directive.of(_MARK, f"--{option}", value) for option, value in options])


def spec_problems(spec: JobSpec, site: Site) -> Iterator[str]:
    """Why Flux can never be asked for this, one sentence each."""
    yield from empty_names(spec)
    yield from dependency_problems(spec)
    yield from _attribute_problems(spec.attributes or JobAttributes())
    yield from _resource_problems(spec)
    wrong = list(option_problems(spec))
    yield from wrong
    options = _own_options(spec, site, _SOME_TAG) if wrong else _options(spec, site, _SOME_TAG)
    yield from unsayable(_MARK, [(f"--{option}", value) for option, value in options])


def _attribute_problems(attributes: JobAttributes) -> Iterator[str]:
    if attributes.reservation_id:
        yield "attributes.reservation_id: Flux has no reservations that a job could name"
    if attributes.project_name and not _is_text(attributes.project_name):
        yield (
            f"attributes.project_name: Flux would read {attributes.project_name!r} as a JSON value "
            "and not as the name of a bank"
        )


def _is_text(value: str) -> bool:
    """Whether `--setattr` takes a value for text: it reads as JSON whatever can be read so."""
    try:
        json.loads(value)
    except ValueError:
        return True
    return False


def _resource_problems(spec: JobSpec) -> Iterator[str]:
    resources, shape = spec.resources, Shape.of(spec)
    if not isinstance(resources, ResourceSpecV1):
        return
    if shape.exclusive and shape.nodes is None and shape.slots > 1:
        yield "resources.exclusive_node_use: Flux gives whole nodes by their number, so node_count is needed"
    if resources.memory is not None and not shape.exclusive:
        yield (
            "resources.memory: Flux cannot be asked for memory; leave it out, or have whole nodes "
            "with exclusive_node_use"
        )


def _options(spec: JobSpec, site: Site, tag: str, after: Iterable[Dependency] = ()) -> list[Option]:
    return [*_own_options(spec, site, tag), *dependency_options(after), *custom(spec)]


def _own_options(spec: JobSpec, site: Site, tag: str) -> Iterator[Option]:
    """Options that flux-submit(1) and flux-batch(1) have both, by their long names."""
    # Nothing else finds a job again: attributes are not searched, and other fields not the user's to fill.
    yield "job-name", f"{spec.name} {tag}" if spec.name else tag
    # The runner goes to the directory and opens the streams. Flux runs a job elsewhere whose directory is
    # not there, and calls it COMPLETED; and a file that it cannot open ends the job before it has begun.
    yield "cwd", "/"
    yield "output", "/dev/null"
    attributes = spec.attributes or JobAttributes()
    if attributes.queue_name is not None:
        yield "queue", attributes.queue_name
    if attributes.project_name is not None:
        # Flux < 0.65 has no --bank
        yield "setattr", f"bank={attributes.project_name}"
    limit = duration(spec, site.config)
    if limit:
        # without a unit it would be minutes
        yield "time-limit", f"{units(limit, _SECOND)}s"
    yield from Shape.of(spec).options().items()
