"""The launcher `jsrun`: runs the job's processes with the Job Step Manager of LSF."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import HIDE_COLONS, exec_line, option_words


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables that JSM and the MPI library set for each process."""
    return ("JSM_*", "PMIX_*", "OMPI_*", "CUDA_VISIBLE_DEVICES")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes with `jsrun`, each in a resource set of its own."""
    (layout,) = ProcessLayout.from_components(spec)
    # Summit User Guide (OLCF), "Job Launcher (jsrun)"; each process gets its own resource set
    options = {
        "nrs": layout.processes,
        "tasks_per_rs": 1,
        "cpu_per_rs": layout.cores or 1,
        "gpu_per_rs": layout.gpus,
        "rs_per_host": layout.per_node,
        # Bind to all cores of the set; by default a process may use one.
        "bind": f"packed:{layout.cores or 1}",
        # Place neighbouring ranks together; by default jsrun distributes them round-robin.
        "launch_distribution": "packed",
    }
    return [*require_program("jsrun"), *HIDE_COLONS, exec_line("jsrun", *option_words(options))]
