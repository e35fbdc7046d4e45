"""The answers of fake commands that start processes where they were called, as srun and mpirun do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import CommandResult


def _words(argv: Iterable[str]) -> tuple[str, ...]:
    return tuple(argv)


@attrs.frozen(slots=True, kw_only=True)
class Task:
    """A process that a command starts."""

    #: The program, which is looked for on the caller's PATH, and its arguments.
    argv: tuple[str, ...] = attrs.field(converter=_words)
    #: The variables that it has besides those that the command was called with.
    environment: Mapping[str, str] = attrs.field(factory=dict)


def _tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    return tuple(tasks)


@attrs.frozen(slots=True, kw_only=True)
class TaskLaunch(CommandResult):
    """The answer of a command that starts tasks on this machine, side by side, and waits for them.

    The command passes signals on to them and exits with the largest of their exit codes, which is 128+n after
    signal n. They have its output and its directory. They end at the latest with the fake batch system. Only
    commands on PATH start any: what `answer` returns in this process has started nothing.

    >>> launch = TaskLaunch(tasks=[Task(argv=["true"], environment={"RANK": str(at)}) for at in range(2)])
    >>> launch.returncode, len(launch.tasks)
    (0, 2)
    """

    returncode: int = 0
    tasks: tuple[Task, ...] = attrs.field(converter=_tasks)
    #: Which of them has the standard input of the command, counted from 0; the others read nothing.
    stdin: int | None = 0
    #: Whether the first that fails ends the others; the exit code is its code then.
    ends_on_failure: bool = False
    #: The exit code of a task whose program is not there, and of one whose program cannot be executed.
    not_found: int = 127
    not_executable: int = 126
