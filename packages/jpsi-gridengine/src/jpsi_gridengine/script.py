"""What a job asks of Grid Engine: the `#$` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

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
    dependencies,
    duration,
    empty_names,
    units,
    unsayable,
)

from .config import GridEngineConfig
from .ids import is_id
from .layout import environment, slots
from .names import context, job_name
from .options import Option, option_problems, with_custom

_MARK = "#$"
_MEBIBYTE = 1 << 20
# sge_types(5) of 8.1.9: object_name. The answer to others is an error in the answer.
_SAYABLE = re.compile(r"[!-~]+\Z")
# Stands for the tag of a submission that is not made yet.
_SOME_TAG = "x" * 60


def script(spec: JobSpec, submission: SubmitContext) -> Script:
    """The directives for a spec.

    Raises:
        ValueError: something cannot be said; `spec_problems` says so first.
    """
    options = _options(spec, submission.site, submission.tag, submission.after)
    return Script([Directive.of(_MARK, f"-{option}", value, joint=" ") for option, value in options])


def spec_problems(spec: JobSpec, site: Site) -> Iterator[str]:
    """Why Grid Engine can never be asked for this, one sentence each."""
    yield from empty_names(spec)
    yield from _name_problems(spec.attributes or JobAttributes())
    yield from _dependency_problems(spec)
    wrong = list(option_problems(spec))
    yield from wrong
    if wrong:
        attributes = attrs.evolve(spec.attributes or JobAttributes(), custom_attributes=None)
        spec = attrs.evolve(spec, attributes=attributes)
    try:
        options = _options(spec, site, _SOME_TAG, ())
    except ValueError as e:
        yield str(e)
        return
    yield from unsayable(_MARK, [(f"-{option}", value) for option, value in options], joint=" ")


def _name_problems(attributes: JobAttributes) -> Iterator[str]:
    for name in ("queue_name", "project_name", "reservation_id"):
        value = getattr(attributes, name)
        if value and not _SAYABLE.match(value):
            yield f"attributes.{name} cannot be {value!r}: Grid Engine knows no blanks, and ASCII alone"


def _dependency_problems(spec: JobSpec) -> Iterator[str]:
    for native_id in [it.native_id for it in dependencies(spec) if it.native_id is not None]:
        if not is_id(native_id):
            yield f"attributes.after: {native_id!r} is no job id of Grid Engine's"


def _options(spec: JobSpec, site: Site, tag: str, after: Sequence[Dependency]) -> list[Option]:
    """The options of qsub without their dashes; sge_submit(1) of 8.1.9, OPTIONS."""
    config: GridEngineConfig = site.config
    attributes = spec.attributes or JobAttributes()
    options: dict[str, str | None] = {
        "N": job_name(spec.name, tag),
        **context(spec.name),
        "S": "/bin/sh",
        # The runner opens the job's streams. A directory or a file that Grid Engine cannot open would leave
        # the job in an error state for ever.
        "wd": "/",
        "o": "/dev/null",
        "e": "/dev/null",
        "V": None,
        **_attributes(attributes),
        # A site's defaults may end with -soft, after which nothing would have to be fulfilled.
        "hard": None,
        **_resources(spec, config),
    }
    if config.requeue is not None:
        options["r"] = "yes" if config.requeue else "no"
    if after:
        options["hold_jid"] = ",".join(str(it.native_id) for it in after)
    return with_custom(options, spec)


def _attributes(attributes: JobAttributes) -> dict[str, str | None]:
    named = {"q": attributes.queue_name, "P": attributes.project_name, "ar": attributes.reservation_id}
    return {option: value for option, value in named.items() if value is not None}


def _resources(spec: JobSpec, config: GridEngineConfig) -> dict[str, str | None]:
    resources = spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()
    options: dict[str, str | None] = {}
    requests = _requests(resources, config, duration(spec, config))
    if requests:
        options["l"] = ",".join(f"{name}={value}" for name, value in requests.items())
    if not _has_own_environment(spec):
        named = environment(resources, config)
        if named is not None:
            options["pe"] = f"{named} {slots(resources)}"
    return options


def _has_own_environment(spec: JobSpec) -> bool:
    return any(name.split()[0] == "pe" for name, _ in with_custom({}, spec))


def _requests(resources: ResourceSpecV1, config: GridEngineConfig, limit: timedelta) -> dict[str, str]:
    """What `-l` asks for; of what is counted, Grid Engine takes so much for each slot."""
    requests: dict[str, str] = {}
    if limit:
        requests["h_rt"] = str(units(limit, timedelta(seconds=1)))
    if resources.memory is not None:
        share = f"{units(resources.memory, slots(resources) * _MEBIBYTE)}M"
        requests.update(dict.fromkeys(config.memory_resource.split(","), share))
    if resources.gpu_cores_per_process:
        requests.update(_gpus(resources, resources.gpu_cores_per_process, config))
    if resources.exclusive_node_use:
        requests[config.exclusive_resource] = "true"
    return requests


def _gpus(resources: ResourceSpecV1, gpus: int, config: GridEngineConfig) -> dict[str, str]:
    if config.gpu_resource is None:
        msg = "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"
        raise ValueError(msg)
    share, rest = divmod(gpus, resources.cpu_cores_per_process or 1)
    if rest:
        msg = (
            f"GPUs are counted for each slot, that is, each CPU core: {gpus} for a process of "
            f"{resources.cpu_cores_per_process} cores cannot be said"
        )
        raise ValueError(msg)
    return dict.fromkeys(config.gpu_resource.split(","), str(share))
