"""The launcher `aprun`: runs the job's processes with the Application Level Placement Scheduler of Cray."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, set_options
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import HIDE_COLONS, exec_line


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables that ALPS sets for each process."""
    return ("ALPS_*", "PMI_*", "CUDA_VISIBLE_DEVICES", "CRAY_CUDA_*")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that run the job's processes with `aprun`."""
    (layout,) = ProcessLayout.from_components(spec)
    # aprun(1), Cray S-2496
    options = {"n": layout.processes, "N": layout.per_node, "d": layout.cores}
    words = [word for name, value in set_options(options) for word in (f"-{name}", str(value))]
    # Without -q aprun appends the run time of the processes to their output.
    return [*require_program("aprun"), *HIDE_COLONS, exec_line("aprun", "-q", *words)]
