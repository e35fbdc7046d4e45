"""Renders a job spec into `#flux:` lines, and checks that Flux can express it."""

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

from ..submit_options import CUSTOM
from .resources import Shape

_FORM = ScriptForm(mark="#flux:", custom=CUSTOM)
_SECOND = timedelta(seconds=1)


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Flux can never run this spec."""
    return [
        *_attribute_problems(attributes(spec)),
        *_resource_problems(spec),
        *_FORM.problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _FORM.render(spec, context, _options)


def _attribute_problems(requested: JobAttributes) -> Iterator[str]:
    if requested.reservation_id:
        yield "attributes.reservation_id: Flux has no reservations that a job could name"
    if requested.project_name and not _is_text(requested.project_name):
        yield (
            f"attributes.project_name: Flux would read {requested.project_name!r} as a JSON value "
            "and not as the name of a bank"
        )


def _is_text(value: str) -> bool:
    """Return True if `--setattr` takes a value as text: it parses everything that is valid JSON."""
    try:
        json.loads(value)
    except ValueError:
        return True
    return False


def _resource_problems(spec: JobSpec) -> Iterator[str]:
    shape = Shape.for_spec(spec)
    if shape.exclusive and shape.nodes is None and shape.slots > 1:
        yield "resources.exclusive_node_use: Flux gives whole nodes by their number, so node_count is needed"
    if resources(spec).memory is not None and not shape.exclusive:
        yield (
            "resources.memory: Flux has no option for memory; leave it out, or have whole nodes "
            "with exclusive_node_use"
        )


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the job's options, common to flux-submit(1) and flux-batch(1), by their long names."""
    requested = attributes(spec)
    limit = time_limit(spec, context.site.config, _SECOND)
    return {
        # jpsi finds a job only by its name: Flux does not list attributes, and users cannot set other fields.
        "job-name": f"{spec.name} {context.tag}" if spec.name else context.tag,
        # The runner changes to the directory and opens the streams. If the directory is missing, Flux runs
        # the job in another one and calls it COMPLETED; a file that it cannot open ends the job before it
        # starts.
        "cwd": "/",
        "output": "/dev/null",
        "queue": requested.queue_name,
        # Flux < 0.65 has no --bank
        "setattr": None if requested.project_name is None else f"bank={requested.project_name}",
        # without a unit Flux takes the number as minutes
        "time-limit": None if limit is None else f"{limit}s",
        **Shape.for_spec(spec).options(),
        # All dependencies must be satisfied.
        "dependency": tuple(f"after{it.kind.value}:{it.native_id}" for it in context.after),
    }
