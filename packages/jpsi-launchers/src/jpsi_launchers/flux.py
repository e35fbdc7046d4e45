"""The launcher `flux`: runs the job's processes with `flux run`, in the job's Flux instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout


@hookimpl
def rank_variables() -> Sequence[str]:
    return ("FLUX_*", "PMI_*", "PMIX_*", "OMPI_MCA_*", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    return [
        *require_program("flux"),
        ShellLine(f'{line("exec", "flux", "run", *_options(ProcessLayout.from_spec(spec)))} "$@"'),
    ]


# The manual pages flux-run(1) and flux-shell-options(7)
def _options(layout: ProcessLayout) -> Iterator[str]:
    yield f"--ntasks={layout.processes}"
    if layout.nodes is not None:
        yield f"--nodes={layout.nodes}"
    if layout.cores is not None:
        yield f"--cores-per-task={layout.cores}"
    if layout.gpus:
        yield f"--gpus-per-task={layout.gpus}"
        yield "--setopt=gpu-affinity=per-task"
    yield "--setopt=cpu-affinity=per-task"
    # By default Flux ends the job half a minute after the first process ends, or never if that one failed.
    yield "--setopt=exit-timeout=none"
    yield "--setopt=exit-on-error"
    # standard input is for rank 0
    yield "--input=0"
