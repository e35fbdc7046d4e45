"""The launcher `single`: runs the job's command once, on the node that runs the job's script.

It runs once even if the job asks for several processes: a command that starts the processes itself, such as a
script with `srun` or `mpirun` in it, asks for the resources and uses this launcher.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import ShellLine, hookimpl


@hookimpl
def heterogeneous() -> bool:
    """Return True: one process runs, whatever the kinds of the job's slots."""
    return True


@hookimpl
def launch() -> Sequence[ShellLine]:
    """Return the line that replaces the shell by the job's command."""
    # exec, so that a shell builtin of the same name is never taken for the executable
    return [ShellLine('exec "$@"')]
