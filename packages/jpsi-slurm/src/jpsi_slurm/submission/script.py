"""What a job asks of Slurm: the `#SBATCH` lines for a spec, and what in a spec no such line can say."""

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

from ..options import CUSTOM, DEPENDENCIES, NAMES

# slurmctld refuses longer values (src/slurmctld/job_mgr.c, _test_strlen), of which it counts the bytes
_FORM = ScriptForm(mark="#SBATCH", longest=1024, custom=CUSTOM)
_DEFAULT_NAME = "jpsi"
# The finest that `--time` can say (sbatch(1): the time resolution)
_MINUTE = timedelta(minutes=1)
_MEBIBYTE = 1 << 20


@hookimpl
def check_spec(spec: JobSpec, site: Site) -> list[str]:
    """Why Slurm can never be asked for this."""
    found = [it for part, options in _parts(spec) for it in _FORM.problems(part, site, options)]
    return list(dict.fromkeys(found))


@hookimpl
def render_script(spec: JobSpec, context: SubmitContext) -> Script:
    """The directives for a spec."""
    first, *others = (_FORM.script(part, context, options) for part, options in _parts(spec))
    between = Directive.of("#SBATCH", "hetjob")
    directives = [it for script in others for it in (between, *script.directives)]
    return Script([*first.directives, *directives])


def _parts(spec: JobSpec) -> list[tuple[JobSpec, Callable[[JobSpec, SubmitContext], Options]]]:
    """The spec of each component as if it were a job, with what makes options of it; sbatch(1), hetjob.

    A component has all options: sbatch takes some over from the component before it, and some not.
    """
    kinds = components(spec.resources)
    # --mem is one of those, and beside it no component may have --mem-per-cpu.
    is_of_nodes = len(kinds) == 1 or all(it.memory is not None and _has_nodes(it) for it in kinds)
    options = _options if is_of_nodes else _options_of_cpus
    return [(attrs.evolve(spec, resources=kind), options) for kind in kinds]


def _options(spec: JobSpec, context: SubmitContext) -> Options:
    """The options of sbatch by their long names; sbatch(1), OPTIONS."""
    asked, config = attributes(spec), context.site.config
    return {
        "job-name": spec.name or _DEFAULT_NAME,
        "comment": context.tag,
        "array": _array(context),
        # The runner opens the job's streams. A directory or a file that Slurm cannot open would end the
        # job before it has begun, with no word of it anywhere.
        "chdir": "/",
        "output": "/dev/null",
        "error": "/dev/null",
        # Anything but ALL runs a login shell and leaves SLURM_EXPORT_ENV, by which srun's tasks lose
        # their environment; and values with commas arrive cut when they stand in the option.
        "export": "ALL",
        **{option: getattr(asked, field) for option, field in NAMES.items()},
        # `--time=0` means UNLIMITED, which partitions with a limit never start.
        "time": time_limit(spec, config, _MINUTE),
        **_resources(resources(spec)),
        "requeue": config.requeue is True,
        "no-requeue": config.requeue is False,
        **_after(context.after),
    }


def _options_of_cpus(spec: JobSpec, context: SubmitContext) -> Options:
    """The same, with memory as a share of each CPU."""
    asked, options = resources(spec), dict(_options(spec, context))
    if options.pop("mem", None) is not None and asked.memory is not None:
        options |= _memory_of_cpus(asked, asked.memory)
    return options


def _array(context: SubmitContext) -> str | None:
    """The indices of an array, and how many of its elements may run at a time."""
    indices = None if context.elements is None else f"1-{context.elements}"
    return indices if context.at_a_time is None else f"{indices}%{context.at_a_time}"


def _resources(asked: ResourceSpecV1) -> Options:
    nodes = node_count(asked)
    return {
        "nodes": nodes,
        "ntasks": asked.computed_process_count,
        # Beside --ntasks this is the most that a node gets (sbatch(1)), so that a last node may have fewer.
        "ntasks-per-node": None if nodes is None else asked.computed_processes_per_node,
        "cpus-per-task": asked.cpu_cores_per_process,
        # The one option that says "for each process" however many nodes Slurm chooses.
        "gpus-per-task": asked.gpu_cores_per_process or None,
        "exclusive": asked.exclusive_node_use,
        **({} if asked.memory is None else _memory(asked, asked.memory)),
    }


def _memory(asked: ResourceSpecV1, memory: int) -> Options:
    """The job's memory as a share of each node, or of each CPU where the nodes are Slurm's choice."""
    if not _has_nodes(asked):
        return _memory_of_cpus(asked, memory)
    return {"mem": f"{units(memory, (node_count(asked) or 1) * _MEBIBYTE)}M"}


def _memory_of_cpus(asked: ResourceSpecV1, memory: int) -> Options:
    cpus = asked.computed_process_count * (asked.cpu_cores_per_process or 1)
    return {"mem-per-cpu": f"{units(memory, cpus * _MEBIBYTE)}M"}


def _has_nodes(asked: ResourceSpecV1) -> bool:
    """Whether it is known how many nodes there will be."""
    return node_count(asked) is not None or asked.computed_process_count == 1


def _after(after: Iterable[Dependency]) -> Options:
    """The options for these dependencies; all of them must be satisfied."""
    words = [f"{DEPENDENCIES[it.kind]}:{it.native_id}" for it in after]
    # Without the second, a job whose dependency cannot be satisfied any more stays pending for ever.
    return {"dependency": ",".join(words), "kill-on-invalid-dep": "yes"} if words else {}
