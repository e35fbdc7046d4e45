"""Renders a job spec into `#SBATCH` lines, and checks that Slurm can express it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

import attrs

from jpsi.plugin import (
    Dependency,
    Directive,
    JobSpec,
    Options,
    ResourceSpecV1,
    Script,
    Site,
    SubmitContext,
    attributes,
    components,
    hookimpl,
    node_count,
    resources,
    time_limit,
    units,
)
from jpsi.plugin.kit import ScriptForm

from ..sbatch_options import ATTRIBUTE_OPTIONS, CUSTOM, DEPENDENCIES

# slurmctld refuses values of more bytes (src/slurmctld/job_mgr.c, _test_strlen)
_FORM = ScriptForm(mark="#SBATCH", longest=1024, custom=CUSTOM)
_DEFAULT_NAME = "jpsi"
# The resolution of `--time` (sbatch(1))
_MINUTE = timedelta(minutes=1)
_MEBIBYTE = 1 << 20


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Return the problems for which Slurm can never run this spec."""
    problems = [
        problem
        for part, options in _split_components(spec)
        for problem in _FORM.problems(part, site, options)
    ]
    return list(dict.fromkeys(problems))


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """Render the directives for a spec."""
    first, *others = (_FORM.render(part, context, options) for part, options in _split_components(spec))
    separator = Directive.of("#SBATCH", "hetjob")
    directives = [directive for script in others for directive in (separator, *script.directives)]
    return Script([*first.directives, *directives])


def _split_components(spec: JobSpec) -> list[tuple[JobSpec, Callable[[JobSpec, SubmitContext], Options]]]:
    """Return each component's spec as if it were a job, with the function that renders its options.

    Each component gets all options, as it inherits only some from the component before (sbatch(1), hetjob).
    """
    resource_kinds = components(spec.resources)
    # --mem is inherited, and a component with --mem excludes --mem-per-cpu in all components.
    is_memory_per_node = len(resource_kinds) == 1 or all(
        kind.memory is not None and _is_node_count_known(kind) for kind in resource_kinds
    )
    options = _options if is_memory_per_node else _options_with_memory_per_cpu
    return [(attrs.evolve(spec, resources=kind), options) for kind in resource_kinds]


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the sbatch options by their long names; sbatch(1), OPTIONS."""
    requested, config = attributes(spec), context.site.config
    return {
        "job-name": spec.name or _DEFAULT_NAME,
        "comment": context.tag,
        "array": _array_option(context),
        # The runner opens the job's streams. A directory or file that Slurm cannot open would end the job
        # before it starts, without any message.
        "chdir": "/",
        "output": "/dev/null",
        "error": "/dev/null",
        # Any other value than ALL runs a login shell and sets SLURM_EXPORT_ENV, through which srun's tasks
        # lose their environment; and sbatch cuts values with commas in this option.
        "export": "ALL",
        **{option: getattr(requested, field) for option, field in ATTRIBUTE_OPTIONS.items()},
        # `--time=0` means UNLIMITED; partitions with a limit never start such a job.
        "time": time_limit(spec, config, _MINUTE),
        **_resource_options(resources(spec)),
        "requeue": config.requeue is True,
        "no-requeue": config.requeue is False,
        **_dependency_options(context.after),
    }


def _options_with_memory_per_cpu(spec: JobSpec, context: SubmitContext) -> Options:
    """Return the sbatch options as `_options` does, but with the memory per CPU."""
    requested, options = resources(spec), dict(_options(spec, context))
    if options.pop("mem", None) is not None and requested.memory is not None:
        options |= _memory_per_cpu(requested, requested.memory)
    return options


def _array_option(context: SubmitContext) -> str | None:
    """Return the array's indices, with the limit of elements that may run at a time."""
    indices = None if context.elements is None else f"1-{context.elements}"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _resource_options(requested: ResourceSpecV1) -> Options:
    nodes = node_count(requested)
    return {
        "nodes": nodes,
        "ntasks": requested.computed_process_count,
        # Together with --ntasks this is a maximum per node (sbatch(1)), so that the last node may have fewer.
        "ntasks-per-node": None if nodes is None else requested.computed_processes_per_node,
        "cpus-per-task": requested.cpu_cores_per_process,
        # The only option that counts GPUs per process however many nodes Slurm chooses.
        "gpus-per-task": requested.gpu_cores_per_process or None,
        "exclusive": requested.exclusive_node_use,
        **({} if requested.memory is None else _memory_option(requested, requested.memory)),
    }


def _memory_option(requested: ResourceSpecV1, memory: int) -> Options:
    """Return the option for memory per node, or per CPU if Slurm chooses the number of nodes."""
    if not _is_node_count_known(requested):
        return _memory_per_cpu(requested, memory)
    return {"mem": f"{units(memory, (node_count(requested) or 1) * _MEBIBYTE)}M"}


def _memory_per_cpu(requested: ResourceSpecV1, memory: int) -> Options:
    cpus = requested.computed_process_count * (requested.cpu_cores_per_process or 1)
    return {"mem-per-cpu": f"{units(memory, cpus * _MEBIBYTE)}M"}


def _is_node_count_known(requested: ResourceSpecV1) -> bool:
    """Return True if the number of nodes is known before the job starts."""
    return node_count(requested) is not None or requested.computed_process_count == 1


def _dependency_options(after: Iterable[Dependency]) -> Options:
    """Return the options for these dependencies, all of which must be satisfied."""
    words = [f"{DEPENDENCIES[dependency.kind]}:{dependency.native_id}" for dependency in after]
    # Without the second option, a job whose dependency can no longer be satisfied stays pending for ever.
    return {"dependency": ",".join(words), "kill-on-invalid-dep": "yes"} if words else {}
