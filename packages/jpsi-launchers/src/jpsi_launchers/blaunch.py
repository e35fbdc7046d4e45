"""The launcher `blaunch`: starts the processes through LSF itself, where a job needs no MPI.

It relies on what the manual of LSF 10.1 says about blaunch(8) only: it runs a command on a host of the job.
Everything else goes through files: see `TaskStarter`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ShellLine, hookimpl

from .task_starter import TaskStarter


@hookimpl
def heterogeneous() -> bool:
    """Return True: it starts a process on the host of each slot, whatever the kinds of slots."""
    return True


@hookimpl
def rank_variables() -> Sequence[str]:
    """Return the variables with the rank of a process, and those of LSF about its place."""
    return ("JPSI_RANK", "JPSI_SIZE", *_BLAUNCH.variables.values())


@hookimpl
def launch(spec: JobSpec) -> Sequence[ShellLine]:
    """Return the lines that start all processes and wait for them.

    The exit code is that of the lowest rank that failed.
    """
    return _BLAUNCH.lines(spec)


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
