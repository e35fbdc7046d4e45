"""The launcher `srun`: runs the job's processes as a step of the Slurm job that they are in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jpsi.plugin import JobSpec, ShellLine, custom_options, custom_problems, hookimpl, line, option_text

from .shape import Shape
from .text import HIDE_COLONS

_SYSTEM = "srun"
# srun(1), OPTIONS: long names
_NAME = re.compile(r"[a-z][a-z0-9]+(-[a-z0-9]+)*\Z")
# srun(1), OPTIONS, those that would break what jpsi promises, with what to do instead
_REFUSED = {
    "chdir": "set JobSpec.directory",
    "error": "set JobSpec.stderr_path",
    "export": "set JobSpec.environment and inherit_environment",
    "input": "standard input is for rank 0",
    "multi-prog": "the job's command is JobSpec.executable",
    "ntasks": "set process_count in the resources",
    "output": "set JobSpec.stdout_path",
    "pty": "jobs have no terminal",
}


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    return list(custom_problems(spec, _SYSTEM, _NAME, "mpi", _REFUSED))


@hookimpl
def rank_variables() -> Sequence[str]:
    return (
        *("SLURM_*", "SLURMD_*", "PMI_*", "PMI2_*", "PMIX_*", "OMPI_MCA_*"),
        *("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
    )


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    options = dict(_options(Shape.of(spec)))
    for name, value in custom_options(spec, _SYSTEM).items():
        options.pop(name, None)
        if value is not None and value is not False:
            options[name] = option_text(value)
    words = [f"--{name}" if value is None else f"--{name}={value}" for name, value in options.items()]
    return [*HIDE_COLONS, ShellLine(f'{line("exec", "srun", *words)} "$@"')]


# srun(1) of Slurm 22.05
def _options(shape: Shape) -> Mapping[str, str | None]:
    asked = {
        "nodes": shape.nodes,
        "ntasks": shape.processes,
        "ntasks-per-node": shape.per_node,
        # Since 22.05 a step does not inherit it from its job.
        "cpus-per-task": shape.cores,
        "gpus-per-task": shape.gpus or None,
    }
    return {
        **{name: str(value) for name, value in asked.items() if value is not None},
        # Standard input is for rank 0, and not for each of them.
        "input": "0",
        # The job may have been submitted with something else, which steps would inherit.
        "export": "ALL",
        # Every process may take its time, whatever the site's WaitTime is.
        "wait": "0",
    }
