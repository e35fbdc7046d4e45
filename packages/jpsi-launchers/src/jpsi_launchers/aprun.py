"""The launcher `aprun`: runs the job's processes with the Application Level Placement Scheduler of Cray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import HIDE_COLONS


@hookimpl
def rank_variables() -> Sequence[str]:
    return ("ALPS_*", "PMI_*", "CUDA_VISIBLE_DEVICES", "CRAY_CUDA_*")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return [
        *require_program("aprun"),
        *HIDE_COLONS,
        ShellLine(f'{line("exec", "aprun", *_options(ProcessLayout.from_spec(spec)))} "$@"'),
    ]


# aprun(1), Cray S-2496
def _options(layout: ProcessLayout) -> Iterator[str]:
    # Without -q aprun appends the run time of the processes to their output.
    yield "-q"
    yield from ("-n", str(layout.processes))
    if layout.per_node is not None:
        yield from ("-N", str(layout.per_node))
    if layout.cores is not None:
        yield from ("-d", str(layout.cores))
