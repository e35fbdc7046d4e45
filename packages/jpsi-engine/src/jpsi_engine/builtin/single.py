"""The launcher `single`: runs the job's command once, where the job's script runs.

Once, however many processes there is room for: a command that starts them itself, such as a script with
`srun` or `mpirun` in it, asks for the room and is launched by this.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import ShellLine, hookimpl


@hookimpl
def heterogeneous() -> bool:
    return True


@hookimpl
def launch() -> Sequence[ShellLine]:
    # exec, so that a shell builtin of the same name is never taken for the executable
    return [ShellLine('exec "$@"')]
