"""The launcher `blaunch`: starts the processes through LSF itself, where a job needs no MPI.

It relies on what the manual of LSF 10.1 says about blaunch(8) only: it runs a command on a host of the job.
Everything else goes through files: see `TaskStarter`.
"""

from __future__ import annotations

from .task_starter import TaskStarter

_BLAUNCH = TaskStarter(
    name="blaunch",
    further_path="${LSF_BINDIR:+:$LSF_BINDIR}",
    further_place="in LSF_BINDIR: ${LSF_BINDIR-}",
    variables={"task": "LSF_PM_TASKID", "machine": "LSF_PM_XMACHID", "process": "LSF_PM_XPROCID"},
    write_slots="""\
_NAME_signal=''
# For each process, the host of its slot.
PATH=$_NAME_path cat "$JPSI_NODEFILE" >"$_NAME_files/slots\"""",
    options='-z "$_NAME_slot" -no-shell',
    # The manual says neither which signals it passes on, nor what becomes of a process if one ends it.
    has_ended='[ -z "$_NAME_signal" ] || [ "$_launch_code" -eq 0 ]',
    on_signal="_blaunch_signal=1; ",
)
heterogeneous, rank_variables, launch = _BLAUNCH.heterogeneous, _BLAUNCH.rank_variables, _BLAUNCH.launch
