"""The launcher `pbsdsh`: starts the processes through PBS or Torque itself, where a job needs no MPI.

pbsdsh passes on neither environment, directory, input nor exit codes, and leaves the output of processes to
the streams of the batch job: see `TaskStarter`.
"""

from __future__ import annotations

from .task_starter import TaskStarter

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
heterogeneous, rank_variables, launch = _PBSDSH.heterogeneous, _PBSDSH.rank_variables, _PBSDSH.launch
