"""The launcher `aprun`: runs the job's processes with the Application Level Placement Scheduler of Cray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line, need_program

from .shape import Shape
from .text import HIDE_COLONS


@hookimpl
def rank_variables() -> Sequence[str]:
    return ("ALPS_*", "PMI_*", "CUDA_VISIBLE_DEVICES", "CRAY_CUDA_*")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return [
        *need_program("aprun"),
        *HIDE_COLONS,
        ShellLine(f'{line("exec", "aprun", *_options(Shape.of(spec)))} "$@"'),
    ]


# aprun(1), Cray S-2496
def _options(shape: Shape) -> Iterator[str]:
    # Otherwise it adds how long the processes ran to their output.
    yield "-q"
    yield from ("-n", str(shape.processes))
    if shape.per_node is not None:
        yield from ("-N", str(shape.per_node))
    if shape.cores is not None:
        yield from ("-d", str(shape.cores))
