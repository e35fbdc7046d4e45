"""The launcher `flux`: runs the job's processes with `flux run`, in the job's Flux instance."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, Options, ShellLine, hookimpl
from jpsi.plugin.kit import require_program

from .process_layout import ProcessLayout
from .shell_lines import exec_line, option_words, shell

# Flux's own exit-on-error would kill the other processes and lose what they, and the one that failed, have
# written. As Flux returns the highest exit code, those of processes that it ended must not hide the others.
_END_TOGETHER = shell(
    """\
# Each process runs under a shell that has Flux end the others, with TERM and later KILL, once one has failed.
# shellcheck disable=SC2016  # for that shell
set -- /bin/sh -c '
  _flux_program=$1 _flux_ended=
  shift
  trap _flux_ended=1 TERM
  trap : HUP INT QUIT ALRM USR1 USR2 XCPU
  (trap - HUP INT QUIT TERM ALRM USR1 USR2 XCPU; exec "$@")
  _flux_code=$?
  [ "$_flux_code" -ne 0 ] || exit 0
  [ -z "$_flux_ended" ] || exit 1
  "$_flux_program" job raise --severity=0 --type=exec "$FLUX_JOB_ID" \\
    "rank $FLUX_TASK_RANK ended with exit code $_flux_code" </dev/null >/dev/null 2>&1
  exit "$_flux_code"
' sh "$(command -v flux)" "$@"
"""
)


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
            # By default Flux ends the job half a minute after the first process ends.
            "exit-timeout=none",
        ),
        # standard input is for rank 0
        "input": 0,
    }
    return [
        *require_program("flux"),
        *_END_TOGETHER,
        exec_line("flux", "run", *option_words(options)),
    ]
