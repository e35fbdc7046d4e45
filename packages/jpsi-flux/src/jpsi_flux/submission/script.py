"""What a job asks of Flux: the `#flux:` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

from jpsi.plugin import (
    JobAttributes,
    JobSpec,
    Options,
    Script,
    Site,
    SubmitContext,
    attributes,
    hookimpl,
    resources,
    time_limit,
)
from jpsi.plugin.kit import ScriptForm

from ..options import CUSTOM
from .resources import Shape

_FORM = ScriptForm(mark="#flux:", custom=CUSTOM)
_SECOND = timedelta(seconds=1)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Why Flux can never be asked for this."""
    return [
        *_attribute_problems(attributes(spec)),
        *_resource_problems(spec),
        *_FORM.problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec."""
    return _FORM.script(spec, context, _options)


def _attribute_problems(asked: JobAttributes) -> Iterator[str]:
    if asked.reservation_id:
        yield "attributes.reservation_id: Flux has no reservations that a job could name"
    if asked.project_name and not _is_text(asked.project_name):
        yield (
            f"attributes.project_name: Flux would read {asked.project_name!r} as a JSON value "
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
    shape = Shape.of(spec)
    if shape.exclusive and shape.nodes is None and shape.slots > 1:
        yield "resources.exclusive_node_use: Flux gives whole nodes by their number, so node_count is needed"
    if resources(spec).memory is not None and not shape.exclusive:
        yield (
            "resources.memory: Flux cannot be asked for memory; leave it out, or have whole nodes "
            "with exclusive_node_use"
        )


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Options that flux-submit(1) and flux-batch(1) have both, by their long names."""
    asked = attributes(spec)
    limit = time_limit(spec, context.site.config, _SECOND)
    return {
        # Nothing else finds a job again: attributes are not searched, and other fields not the user's to
        # fill.
        "job-name": f"{spec.name} {context.tag}" if spec.name else context.tag,
        # The runner goes to the directory and opens the streams. Flux runs a job elsewhere whose directory is
        # not there, and calls it COMPLETED; and a file that it cannot open ends the job before it has begun.
        "cwd": "/",
        "output": "/dev/null",
        "queue": asked.queue_name,
        # Flux < 0.65 has no --bank
        "setattr": None if asked.project_name is None else f"bank={asked.project_name}",
        # without a unit it would be minutes
        "time-limit": None if limit is None else f"{limit}s",
        **Shape.of(spec).options(),
        # All of them must be satisfied.
        "dependency": tuple(f"after{it.kind.value}:{it.native_id}" for it in context.after),
    }
