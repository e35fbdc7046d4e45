"""The launcher `jsrun`: runs the job's processes with the Job Step Manager of LSF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import HIDE_COLONS


@hookimpl
def rank_variables() -> Sequence[str]:
    return ("JSM_*", "PMIX_*", "OMPI_*", "CUDA_VISIBLE_DEVICES")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return [
        *require_program("jsrun"),
        *HIDE_COLONS,
        ShellLine(f'{line("exec", "jsrun", *_options(ProcessLayout.from_spec(spec)))} "$@"'),
    ]


# Summit User Guide (OLCF), "Job Launcher (jsrun)"; each process gets its own resource set
def _options(layout: ProcessLayout) -> Iterator[str]:
    cores = layout.cores or 1
    yield f"--nrs={layout.processes}"
    yield "--tasks_per_rs=1"
    yield f"--cpu_per_rs={cores}"
    yield f"--gpu_per_rs={layout.gpus}"
    if layout.per_node is not None:
        yield f"--rs_per_host={layout.per_node}"
    # Bind to all cores of the set; by default a process may use one.
    yield f"--bind=packed:{cores}"
    # Place neighbouring ranks together; by default jsrun distributes them round-robin.
    yield "--launch_distribution=packed"
