"""The launcher `srun`: runs the job's processes as a step of their Slurm job."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import CustomOptions, JobSpec, Options, ShellLine, hookimpl, line
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import HIDE_COLONS, exec_line, option_words, shell

#: srun(1), OPTIONS, by their long names.
CUSTOM = CustomOptions(
    systems=("srun",),
    name=r"[a-z][a-z0-9]+(-[a-z0-9]+)*",
    example="mpi",
    refused={
        "chdir": "set JobSpec.directory",
        "error": "set JobSpec.stderr_path",
        "export": "set JobSpec.environment and inherit_environment",
        "input": "standard input is for rank 0",
        "multi-prog": "the job's command is JobSpec.executable",
        "het-group": "the components are those of the resources",
        "ntasks": "set process_count in the resources",
        "output": "set JobSpec.stdout_path",
        "pty": "jobs have no terminal",
    },
    # srun accepts abbreviations of option names.
    abbreviated=("cpus-per-task", "distribution", "gpus-per-task", "nodes", "ntasks-per-node", "wait"),
    exact=("gpus",),
)
_SHARING = frozenset({"exact", "exclusive", "overlap"})
# srun(1), INPUT ENVIRONMENT; before Slurm 20.11 steps overlapped, and srun did not read the variable. Steps
# that hold no resources (the batch script, an interactive step) have the largest step ids.
_INSIDE_A_STEP = shell(
    """\
case ${SLURM_STEP_ID-} in
'' | *[!0-9]* | 42949672??) ;;
# A step that holds the whole job, such as a shell by srun --pty, would have this one wait for its end.
*) export SLURM_OVERLAP=1 ;;
esac"""
)


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return the problems with the custom attributes, and with the processes of components."""
    found = list(CUSTOM.problems(spec))
    layouts = ProcessLayout.from_components(spec)
    if len(layouts) > 1 and any(it.is_uneven for it in layouts):
        found.append("the launcher srun needs as many processes on each node of a component")
    return found


@hookimpl
def heterogeneous() -> bool:
    """Return True: a step can span the components of a heterogeneous job."""
    return True


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables that Slurm and the MPI libraries set for each process."""
    return (
        *("SLURM_*", "SLURMD_*", "PMI_*", "PMI2_*", "PMIX_*", "OMPI_MCA_*"),
        *("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
    )


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes as one step of its Slurm job."""
    layouts = ProcessLayout.from_components(spec)
    # If the user set an option about how steps share the job, that option decides.
    inside = () if CUSTOM.of(spec).keys() & _SHARING else _INSIDE_A_STEP
    before = [*require_program("srun"), *HIDE_COLONS, *inside]
    if len(layouts) > 1:
        return [*before, *_heterogeneous_step(layouts, spec)]
    options = CUSTOM.merged(_options(layouts[0]), spec)
    hostfile_lines = _HOSTFILE_LINES if options.get("distribution") == _AS_LISTED else ()
    return [*before, *hostfile_lines, exec_line("srun", *option_words(options))]


def _heterogeneous_step(layouts: Sequence[ProcessLayout], spec: JobSpec) -> list[ShellLine]:
    """Return a step over all components, each with its own options; srun(1), HETEROGENEOUS JOBS."""
    parts = []
    for group, layout in enumerate(layouts):
        options = CUSTOM.merged({"het-group": group, **_options(layout)}, spec)
        parts.append(f'{line(*option_words(options))} "$@"')
    return [ShellLine(f"exec srun {' : '.join(parts)}")]


# srun(1), --distribution: srun reads the node of each task from a file. Otherwise it would spread tasks
# evenly over uneven nodes, and warn that it ignores the number with which the job was submitted.
_AS_LISTED = "arbitrary"
_HOSTFILE_LINES = (
    ShellLine("unset SLURM_NTASKS_PER_NODE"),
    ShellLine('export SLURM_HOSTFILE="$JPSI_NODEFILE"'),
)


# srun(1) of Slurm 22.05
def _options(layout: ProcessLayout) -> Options:
    return {
        "nodes": layout.nodes,
        "ntasks": layout.processes,
        "ntasks-per-node": None if layout.is_uneven else layout.requested_per_node,
        "distribution": _AS_LISTED if layout.is_uneven else None,
        # Since Slurm 22.05 a step does not inherit this option from its job.
        "cpus-per-task": layout.cores,
        "gpus-per-task": layout.gpus or None,
        # Standard input goes to rank 0 only.
        "input": "0",
        # Steps would inherit another value with which the job was submitted.
        "export": "ALL",
        # The other processes may run on after the first ends, whatever the site's WaitTime is.
        "wait": "0",
    }
