"""The launcher `jsrun`: runs the job's processes with the Job Step Manager of LSF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line, need_program

from .shape import Shape
from .text import HIDE_COLONS


@hookimpl
def rank_variables() -> Sequence[str]:
    return ("JSM_*", "PMIX_*", "OMPI_*", "CUDA_VISIBLE_DEVICES")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return [
        *need_program("jsrun"),
        *HIDE_COLONS,
        ShellLine(f'{line("exec", "jsrun", *_options(Shape.of(spec)))} "$@"'),
    ]


# Summit User Guide (OLCF), "Job Launcher (jsrun)"; each process is a resource set of its own
def _options(shape: Shape) -> Iterator[str]:
    cores = shape.cores or 1
    yield f"--nrs={shape.processes}"
    yield "--tasks_per_rs=1"
    yield f"--cpu_per_rs={cores}"
    yield f"--gpu_per_rs={shape.gpus}"
    if shape.per_node is not None:
        yield f"--rs_per_host={shape.per_node}"
    # All cores of the set: by default a process may use one.
    yield f"--bind=packed:{cores}"
    # Neighbouring ranks are neighbours: by default they go round.
    yield "--launch_distribution=packed"
