"""The launcher `multiple`: runs several copies of the command side by side, on the node of the job script."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl, word
from jpsi.plugin.kit import forward_signals, trap_signals, unignore_signals

from .process_layout import ProcessLayout
from .shell_lines import KEEP_INPUT, shell


@hookimpl
def check_spec(spec: JobSpec) -> list[str]:
    """Return why the launcher cannot run a job: it needs several nodes."""
    nodes = max(it.nodes or 1 for it in ProcessLayout.from_components(spec))
    if nodes > 1:
        return [f"the launcher multiple runs all processes on one node, but {nodes} nodes are asked for"]
    return []


@hookimpl
def heterogeneous() -> bool:
    """Return True: it starts a process for each slot, whatever the kinds of slots."""
    return True


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables that tell each process its rank, and the number of processes."""
    return ("JPSI_RANK", "JPSI_SIZE")


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that start all processes and wait for them.

    The exit code is that of the lowest rank that failed. The lines forward signals to every process.
    """
    return [
        ShellLine(f"JPSI_SIZE={word(str(sum(it.processes for it in ProcessLayout.from_components(spec))))}"),
        *unignore_signals(),
        *forward_signals("launch"),
        *trap_signals("launch"),
        *KEEP_INPUT,
        *_LINES,
    ]


# The exit code depends on ranks, not on time: a POSIX shell cannot tell which rank failed first.
_LINES = shell(
    """\
export JPSI_SIZE
_multiple_rank=0
while [ "$_multiple_rank" -lt "$JPSI_SIZE" ]; do
  (
    [ -z "${BASH_VERSION-}" ] || trap - INT QUIT
    [ "$_multiple_rank" -eq 0 ] || exec 3</dev/null
    JPSI_RANK=$_multiple_rank
    export JPSI_RANK
    exec "$@" <&3 3<&-
  ) &
  _launch_pids="$_launch_pids$! "
  _multiple_rank=$((_multiple_rank + 1))
done
exec 3<&-
# The code of the job is that of the lowest rank that failed.
_multiple_code=0
for _multiple_pid in $_launch_pids; do
  _launch_wait "$_multiple_pid"
  [ "$_multiple_code" -ne 0 ] || _multiple_code=$_launch_code
done
(exit "$_multiple_code")"""
)
