"""The launcher `flux`: runs the job's processes with `flux run`, in the job's Flux instance."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, Options, ShellLine, hookimpl
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import exec_line, option_words


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables that Flux and the MPI libraries set for each process."""
    return ("FLUX_*", "PMI_*", "PMIX_*", "OMPI_MCA_*", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes with `flux run`."""
    (layout,) = ProcessLayout.from_components(spec)
    # The manual pages flux-run(1) and flux-shell-options(7)
    options: Options = {
        "ntasks": layout.processes,
        "nodes": layout.nodes,
        "cores-per-task": layout.cores,
        "gpus-per-task": layout.gpus or None,
        "setopt": (
            "gpu-affinity=per-task" if layout.gpus else None,
            "cpu-affinity=per-task",
            # By default Flux ends the job half a minute after the first process ends, or never if that one
            # failed.
            "exit-timeout=none",
            "exit-on-error",
        ),
        # standard input is for rank 0
        "input": 0,
    }
    return [*require_program("flux"), exec_line("flux", "run", *option_words(options))]
