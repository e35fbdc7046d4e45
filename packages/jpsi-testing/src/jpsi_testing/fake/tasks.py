"""The results of fake commands that start processes where they are called, as srun and mpirun do.

A backend's fake returns a `TaskLaunch`; `task_runner` starts its processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake.invocation import as_words


@attrs.frozen(slots=True, kw_only=True)
class Task:
    """A process that a command starts."""

    #: The program, which is searched on the caller's PATH, and its arguments.
    argv: tuple[str, ...] = attrs.field(converter=as_words)
    #: The variables that are added to the environment of the command.
    environment: Mapping[str, str] = attrs.field(factory=dict)
    #: The files for its output and errors, each made or emptied; None is the stream of the command.
    stdout: str | None = None
    stderr: str | None = None


def _tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    return tuple(tasks)


@attrs.frozen(slots=True, kw_only=True)
class TaskLaunch(CommandResult):
    """The result of a command that starts tasks on this machine, all at the same time, and waits for them.

    The command passes signals on to them and exits with the largest of their exit codes, which is 128+n after
    signal n. They share its output and its directory. They end at the latest with the fake batch system. Only
    commands on PATH start tasks: a call of `answer` in this process starts nothing.

    >>> launch = TaskLaunch(tasks=[Task(argv=["true"], environment={"RANK": str(at)}) for at in range(2)])
    >>> launch.returncode, len(launch.tasks)
    (0, 2)
    """

    returncode: int = 0
    tasks: tuple[Task, ...] = attrs.field(converter=_tasks)
    #: The index of the task that reads the standard input of the command, from 0; the others read nothing.
    stdin: int | None = 0
    #: True if the first task that fails ends the others; its exit code is then that of the command.
    ends_on_failure: bool = False
    #: The exit code of a task whose program does not exist.
    not_found: int = 127
    #: The exit code of a task whose program cannot be executed.
    not_executable: int = 126
    #: True if each line of output comes after the index of its task, as in `0: text`.
    is_labelled: bool = False
    #: A signal to the tasks, and the seconds after which they get it.
    warning: tuple[int, float] | None = None
