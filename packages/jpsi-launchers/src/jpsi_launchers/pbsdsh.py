"""The launcher `pbsdsh`: starts the processes through PBS or Torque itself, where a job needs no MPI.

pbsdsh passes on neither environment, directory, input nor exit codes, and leaves the output of processes to
the streams of the batch job: see `TaskStarter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl

from .task_starter import TaskStarter


@hookimpl
def heterogeneous() -> bool:
    """Return True: it starts a process on the node of each slot, whatever the kinds of slots."""
    return True


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables with the rank of a process, and those of PBS and Torque about its place."""
    return ("JPSI_RANK", "JPSI_SIZE", *_PBSDSH.variables.values())


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that start all processes and wait for them.

    The exit code is that of the lowest rank that failed.
    """
    return _PBSDSH.lines(spec)


_PBSDSH = TaskStarter(
    name="pbsdsh",
    further_path=":${PBS_O_PATH-}",
    further_place="of its submission: ${PBS_O_PATH-}",
    variables={"node": "PBS_NODENUM", "task": "PBS_TASKNUM", "vnode": "PBS_VNODENUM"},
    write_slots="""\
# For each process, the first slot of its node, by which NAME finds the node.
PATH=$_NAME_path awk '
  NR == FNR { if (!($0 in first)) first[$0] = FNR - 1; next }
  { print first[$0] + 0 }
' "${PBS_NODEFILE:-$JPSI_NODEFILE}" "$JPSI_NODEFILE" >"$_NAME_files/slots\"""",
    options='-n "$_NAME_slot" --',
    # It ends with 0 whatever the process returned, and with something else if it was interrupted: then the
    # process may have got the signal as well, and go on.
    has_ended='[ "$_launch_code" -eq 0 ]',
)
