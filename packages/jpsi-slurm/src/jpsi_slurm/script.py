"""What a job asks of Slurm: the `#SBATCH` lines for a spec, and what in a spec no such line can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    duration,
    empty_names,
    unsayable,
)

from .amounts import mebibytes, minutes
from .dependencies import dependency_options, dependency_problems
from .options import option_problems, with_custom

_MARK = "#SBATCH"
_DEFAULT_NAME = "jpsi"
# slurmctld refuses longer ones (src/slurmctld/job_mgr.c, _test_strlen), of which it counts the bytes
_LONGEST = 1024
# Stands for the tag of a submission that is not made yet.
_SOME_TAG = "x" * 60


def script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec.

    Raises:
        ValueError: something cannot be said; `spec_problems` says so first.
    """
    options = _options(spec, context.site, context.tag, context.after)
    return Script([Directive.of(_MARK, f"--{option}", value) for option, value in options.items()])


def spec_problems(spec: JobSpec, site: Site) -> Iterator[str]:
    """Why Slurm can never be asked for this, one sentence each."""
    yield from empty_names(spec)
    yield from dependency_problems(spec)
    wrong = list(option_problems(spec))
    yield from wrong
    yield from _unsayable(_without_custom(spec) if wrong else spec, site)


def _without_custom(spec: JobSpec) -> JobSpec:
    attributes = attrs.evolve(spec.attributes or JobAttributes(), custom_attributes=None)
    return attrs.evolve(spec, attributes=attributes)


def _unsayable(spec: JobSpec, site: Site) -> Iterator[str]:
    try:
        options = _options(spec, site, _SOME_TAG)
    except ValueError as e:
        yield f"a custom attribute cannot be written down: {e}"
        return
    named = [(f"--{option}", value) for option, value in options.items()]
    yield from unsayable(_MARK, named, longest=_LONGEST)


def _options(spec: JobSpec, site: Site, tag: str, after: Iterable[Dependency] = ()) -> dict[str, str | None]:
    """The options of sbatch by their long names; sbatch(1), OPTIONS."""
    options: dict[str, str | None] = {
        "job-name": spec.name or _DEFAULT_NAME,
        "comment": tag,
        # The runner opens the job's streams. A directory or a file that Slurm cannot open would end the
        # job before it has begun, with no word of it anywhere.
        "chdir": "/",
        "output": "/dev/null",
        "error": "/dev/null",
        # Anything but ALL runs a login shell and leaves SLURM_EXPORT_ENV, by which srun's tasks lose
        # their environment; and values with commas arrive cut when they stand in the option.
        "export": "ALL",
        **_attributes(spec.attributes or JobAttributes()),
        **_time(duration(spec, site.config)),
        **_resources(spec.resources),
        **_requeue(site.config.requeue),
        **dependency_options(after),
    }
    return with_custom(options, spec)


def _attributes(attributes: JobAttributes) -> dict[str, str | None]:
    named = {
        "partition": attributes.queue_name,
        "account": attributes.project_name,
        "reservation": attributes.reservation_id,
    }
    return {option: value for option, value in named.items() if value is not None}


def _time(limit: timedelta) -> dict[str, str | None]:
    # `--time=0` means UNLIMITED, which partitions with a limit never start.
    return {"time": str(minutes(limit))} if limit else {}


def _resources(resources: object) -> dict[str, str | None]:
    if not isinstance(resources, ResourceSpecV1):
        return {"ntasks": "1"}
    options: dict[str, str | None] = {}
    if _nodes(resources) is not None:
        options["nodes"] = str(_nodes(resources))
    options["ntasks"] = str(resources.computed_process_count)
    if _nodes(resources) is not None:
        # Beside --ntasks this is the most that a node gets (sbatch(1)), so that a last node may have fewer.
        options["ntasks-per-node"] = str(resources.computed_processes_per_node)
    if resources.cpu_cores_per_process is not None:
        options["cpus-per-task"] = str(resources.cpu_cores_per_process)
    if resources.gpu_cores_per_process:
        # The one option that says "for each process" however many nodes Slurm chooses.
        options["gpus-per-task"] = str(resources.gpu_cores_per_process)
    if resources.exclusive_node_use:
        options["exclusive"] = None
    if resources.memory is not None:
        options.update(_memory(resources, resources.memory))
    return options


def _nodes(resources: ResourceSpecV1) -> int | None:
    """How many nodes the job wants; None leaves it to Slurm (J/PSI 0: setProcessCount)."""
    if resources.node_count is None and resources.processes_per_node is None:
        return None
    return resources.computed_node_count


def _memory(resources: ResourceSpecV1, memory: int) -> dict[str, str | None]:
    """The job's memory as a share of each node, or of each CPU where the nodes are Slurm's choice."""
    nodes = 1 if resources.computed_process_count == 1 else _nodes(resources)
    if nodes is not None:
        return {"mem": mebibytes(memory, nodes)}
    cpus = resources.computed_process_count * (resources.cpu_cores_per_process or 1)
    return {"mem-per-cpu": mebibytes(memory, cpus)}


def _requeue(requeue: bool | None) -> dict[str, str | None]:  # noqa: FBT001  the field of the configuration
    if requeue is None:
        return {}
    return {"requeue" if requeue else "no-requeue": None}
