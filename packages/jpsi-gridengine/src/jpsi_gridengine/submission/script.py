"""Renders a job spec into `#$` lines, and checks that Grid Engine can express it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from jpsi.plugin import (
    JobAttributes,
    JobSpec,
    Options,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    attributes,
    hookimpl,
    resources,
    time_limit,
    units,
)
from jpsi.plugin.kit import ScriptForm

from ..config import GridEngineConfig
from ..job_names import context as kept_name
from ..job_names import job_name
from ..native_ids import job_number
from ..qsub_options import (
    ATTRIBUTE_OPTIONS,
    CUSTOM,
    requested_slots,
    split_parallel_environment,
    value_problems,
)
from .resources import count_slots, parallel_environment

_FORM = ScriptForm(mark="#$", dashes="-", joint=" ", custom=CUSTOM, spelled=split_parallel_environment)
_MEBIBYTE = 1 << 20
_SECOND = timedelta(seconds=1)
# sge_types(5) of 8.1.9: object_name. With other names, the output of qsub itself becomes malformed.
_PRINTABLE = re.compile(r"[!-~]+\Z")
_WORDS = {None: None, True: "yes", False: "no"}


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Grid Engine can never run this spec."""
    return [
        *_name_problems(attributes(spec)),
        *value_problems(spec),
        *_FORM.problems(spec, site, _options),
    ]


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    return _FORM.render(spec, context, _options)


def _name_problems(requested: JobAttributes) -> Iterator[str]:
    for name in ("queue_name", "project_name", "reservation_id"):
        value = getattr(requested, name)
        if value and not _PRINTABLE.match(value):
            yield f"attributes.{name} cannot be {value!r}: Grid Engine knows no blanks, and ASCII alone"


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the qsub options without their dashes; sge_submit(1) of 8.1.9, OPTIONS."""
    requested, config = attributes(spec), context.site.config
    return {
        "N": job_name(spec.name, context.tag),
        "t": None if context.elements is None else f"1-{context.elements}",
        "tc": None if context.at_a_time is None else str(context.at_a_time),
        "ac": kept_name(spec.name),
        "S": "/bin/sh",
        # The runner opens the job's streams. A directory or file that Grid Engine cannot open would leave the
        # job in an error state for ever.
        "wd": "/",
        "o": "/dev/null",
        "e": "/dev/null",
        "V": True,
        **{option: getattr(requested, field) for option, field in ATTRIBUTE_OPTIONS.items()},
        "l": _resource_requests(
            resources(spec), config, time_limit(spec, config, _SECOND), _slots_of_job(spec)
        ),
        # A user's own environment need not be a configured one.
        "pe": None if CUSTOM.of(spec).get("pe") else parallel_environment(resources(spec), config),
        "r": _WORDS[config.requeue],
        # -hold_jid takes no single tasks: a dependency on a task waits for its whole array.
        "hold_jid": ",".join(
            dict.fromkeys(job_number(str(dependency.native_id)) for dependency in context.after)
        )
        or None,
    }


def _slots_of_job(spec: JobSpec) -> int:
    """Return the number of slots of a job; raise ValueError if the user's `pe` has too few."""
    needed, user_slots = count_slots(resources(spec)), requested_slots(spec)
    if user_slots is not None and user_slots < needed:
        msg = f"custom attribute gridengine.pe has {user_slots} slots, and the job's processes need {needed}"
        raise ValueError(msg)
    return user_slots or needed


def _resource_requests(
    requested: ResourceSpecV1, config: GridEngineConfig, limit: int | None, total: int
) -> str | None:
    """Return the value of `-l`; Grid Engine takes amounts of countable resources per slot."""
    requests: dict[str, str] = {}
    if limit is not None:
        requests["h_rt"] = str(limit)
    if requested.memory is not None:
        share = f"{units(requested.memory, total * _MEBIBYTE)}M"
        requests.update(dict.fromkeys(config.memory_resource.split(","), share))
    if requested.gpu_cores_per_process:
        gpus = requested.gpu_cores_per_process * requested.computed_process_count
        requests.update(_gpu_requests(gpus, config, total))
    if requested.exclusive_node_use:
        requests[config.exclusive_resource] = "true"
    return ",".join(f"{name}={value}" for name, value in requests.items()) or None


def _gpu_requests(gpus: int, config: GridEngineConfig, total: int) -> dict[str, str]:
    if config.gpu_resource is None:
        msg = "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"
        raise ValueError(msg)
    share, remainder = divmod(gpus, total)
    if remainder:
        msg = (
            f"GPUs are counted for each slot, that is, each CPU core: {gpus} GPUs cannot be shared equally "
            f"among {total} slots"
        )
        raise ValueError(msg)
    return dict.fromkeys(config.gpu_resource.split(","), str(share))
