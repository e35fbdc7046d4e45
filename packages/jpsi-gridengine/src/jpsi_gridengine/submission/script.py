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
from ..native_ids import number_of
from ..options import CUSTOM, NAMES, own_slots, spelled, value_problems
from .resources import environment, slots

_FORM = ScriptForm(mark="#$", dashes="-", joint=" ", custom=CUSTOM, spelled=spelled)
_MEBIBYTE = 1 << 20
_SECOND = timedelta(seconds=1)
# sge_types(5) of 8.1.9: object_name. With other names, the output of qsub itself becomes malformed.
_SAYABLE = re.compile(r"[!-~]+\Z")
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


def _name_problems(asked: JobAttributes) -> Iterator[str]:
    for name in ("queue_name", "project_name", "reservation_id"):
        value = getattr(asked, name)
        if value and not _SAYABLE.match(value):
            yield f"attributes.{name} cannot be {value!r}: Grid Engine knows no blanks, and ASCII alone"


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the qsub options without their dashes; sge_submit(1) of 8.1.9, OPTIONS."""
    asked, config = attributes(spec), context.site.config
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
        **{option: getattr(asked, field) for option, field in NAMES.items()},
        "l": _requests(resources(spec), config, time_limit(spec, config, _SECOND), _slots(spec)),
        # A user's own environment need not be a configured one.
        "pe": None if CUSTOM.of(spec).get("pe") else environment(resources(spec), config),
        "r": _WORDS[config.requeue],
        # -hold_jid takes no single tasks: a dependency on a task waits for its whole array.
        "hold_jid": ",".join(dict.fromkeys(number_of(str(it.native_id)) for it in context.after)) or None,
    }


def _slots(spec: JobSpec) -> int:
    """Return the number of slots of a job; raise ValueError if the user's `pe` has too few."""
    needed, own = slots(resources(spec)), own_slots(spec)
    if own is not None and own < needed:
        msg = f"custom attribute gridengine.pe has {own} slots, and the job's processes need {needed}"
        raise ValueError(msg)
    return own or needed


def _requests(asked: ResourceSpecV1, config: GridEngineConfig, limit: int | None, total: int) -> str | None:
    """Return the value of `-l`; Grid Engine takes amounts of countable resources per slot."""
    requests: dict[str, str] = {}
    if limit is not None:
        requests["h_rt"] = str(limit)
    if asked.memory is not None:
        share = f"{units(asked.memory, total * _MEBIBYTE)}M"
        requests.update(dict.fromkeys(config.memory_resource.split(","), share))
    if asked.gpu_cores_per_process:
        gpus = asked.gpu_cores_per_process * asked.computed_process_count
        requests.update(_gpus(gpus, config, total))
    if asked.exclusive_node_use:
        requests[config.exclusive_resource] = "true"
    return ",".join(f"{name}={value}" for name, value in requests.items()) or None


def _gpus(gpus: int, config: GridEngineConfig, total: int) -> dict[str, str]:
    if config.gpu_resource is None:
        msg = "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"
        raise ValueError(msg)
    share, rest = divmod(gpus, total)
    if rest:
        msg = f"GPUs are counted for each slot, that is, each CPU core: {gpus} for {total} cannot be said"
        raise ValueError(msg)
    return dict.fromkeys(config.gpu_resource.split(","), str(share))
