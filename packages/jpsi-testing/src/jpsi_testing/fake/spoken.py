"""The commands that `jpsi speak` puts on PATH, and how they make a script of a program a job of jpsi.

A backend offers these commands as a `Speaker`. Most are those of its fake; the one that submits makes a spec,
which the job carries as an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from jpsi.plugin import JobSpec
from jpsi_testing.fake.commands import FakeSystem
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.job import FakeJob

#: The attribute of a job with its spec.
SPEC = "spec"
# Runs the other arguments, which read the first one, a script, as descriptor 3; its file has no name by then.
_FROM_ARGUMENT = """\
file=$(mktemp) && printf %s "$1" >"$file" && exec 3<"$file" && rm -f "$file" && shift && exec "$@"
"""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that a job does not inherit from the program that submits it, whatever the batch system
_NOT_INHERITED = re.compile(r"JPSI_(?!CONFIG\Z|PLUGIN_PATH\Z)|(?:OLDPWD|PWD|SHLVL|_)\Z")
# Variables that describe a machine: a job on another one has those of that
_OF_A_MACHINE = re.compile(
    r"(?:DISPLAY|HOME|HOSTNAME|LD_LIBRARY_PATH|LOGNAME|MAIL|PATH|SHELL|TERM|TMPDIR|USER|VIRTUAL_ENV)\Z"
    r"|CONDA_|DBUS_|PYTHON|SSH_|XDG_"
)


class Speaker(FakeSystem, Protocol):
    """A module with these names, or an object, that an entry point of the group `jpsi.speakers` names."""

    @property
    def never(self) -> str:
        """The reason of pending jobs that can no longer start."""

    def reads_stdin(self, invocation: Invocation) -> bool:
        """Return True if a call reads its standard input."""

    def started(self, job: FakeJob) -> None:
        """Note that a job has started, for what its listing shows from then on."""


class SpokenQueue(Protocol):
    """The jobs that these commands are about; a `FakeScheduler` in all else that they use."""

    #: The name of the executor.
    system: str
    #: True if what jpsi cannot keep is a warning.
    is_lenient: bool
    #: True if all jobs run on this machine.
    is_local: bool
    #: True if jobs see the files of this machine.
    is_shared: bool
    #: True while earlier submissions are read again.
    is_restoring: bool

    def next_number(self, count: int = 1) -> int:
        """Return the first of so many numbers that no other job has."""

    def is_submitted(self, job: FakeJob) -> bool:
        """Return True if a job was handed over, and has not ended."""

    def script_file(self, number: int, text: str, suffix: str = "") -> Path:
        """Return the file with the script of a submission; with a suffix, another file for its jobs."""


def interpreter(script: str) -> list[str]:
    """Return the interpreter that the first line of a script names, and its argument, as the kernel reads it.

    >>> interpreter("#!/bin/awk -f"), interpreter("echo")
    (['/bin/awk', '-f'], [])
    """
    first = script.partition("\n")[0]
    return first.removeprefix("#!").strip().split(maxsplit=1) if first.startswith("#!") else []


def script_command(
    queue: SpokenQueue, file: Path, text: str, program: Sequence[str], arguments: Sequence[str]
) -> list[str]:
    """Return the command that runs a script with its interpreter, also where its file does not exist."""
    if queue.is_shared:
        return [*program, str(file), *arguments]
    return ["/bin/sh", "-c", _FROM_ARGUMENT, "sh", text, *program, "/dev/fd/3", *arguments]


def inherited_variables(call: Invocation, queue: SpokenQueue, own: str) -> dict[str, str]:
    """Return the variables of a program that a job inherits; those that match `own` describe another job."""
    return {
        name: value
        for name, value in call.environment.items()
        if _VARIABLE.fullmatch(name)
        and not re.match(own, name)
        and not _NOT_INHERITED.match(name)
        and (queue.is_shared or not _OF_A_MACHINE.match(name))
    }


def lost_attributes(spec: JobSpec, queue: SpokenQueue, language: str) -> Iterator[tuple[str, Any]]:
    """Remove a batch system's own options from a spec and yield them, if the executor is of another one."""
    if queue.system == language:
        return
    custom: Mapping[str, Any] = spec.attributes.custom_attributes or {}
    spec.attributes.custom_attributes = None
    yield from ((name.removeprefix(f"{language}."), value) for name, value in custom.items())


def with_command(spec: JobSpec, command: Sequence[str], environment: Mapping[str, str]) -> JobSpec:
    """Return a spec with a command, which runs once whatever the job requests; nothing in it is expanded."""
    return attrs.evolve(
        spec,
        executable=command[0],
        arguments=[_escape(it) for it in command[1:]],
        environment={name: _escape(value) for name, value in environment.items()},
        launcher="single",
    )


def _escape(text: str) -> str:
    return text.replace("${", "$${")
