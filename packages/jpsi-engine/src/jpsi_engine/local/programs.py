"""Decides which jobs need no shell, and describes their programs for the process that starts them.

A job needs none if the shell would do nothing but set variables, enter a directory, open files and replace
itself by the program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from jpsi_engine.runner import JOB_ID, OWN_VARIABLES, Run

_OWNER = 0o700
# The lines of a launcher that has the shell replace itself by the program.
_SINGLE = ['exec "$@"']


@attrs.frozen(slots=True)
class Program:
    """A program to start."""

    #: The variables that it gets besides those that it inherits; it does not get those that are None.
    variables: dict[bytes, bytes | None]
    directory: bytes
    umask: int
    #: The files of standard output and standard error; None is that in the folder of the job.
    paths: tuple[bytes | None, bytes | None]
    path: bytes
    words: list[bytes]

    @property
    def fields(self) -> tuple[Any, ...]:
        """The fields, in the order of a request."""
        return (self.variables, self.directory, self.umask, self.paths, self.path, self.words)


def program_of(run: Run, umask: int, inherited: Mapping[str, str]) -> Program | None:
    """Return the program of a job that needs no shell; None for all others, and if PATH does not lead to it.

    Args:
        run: the attempt, which has no time limit.
        umask: the umask of the job.
        inherited: the environment of this process.
    """
    spec = run.spec
    environment, arguments = spec.environment or {}, spec.arguments or []
    executable = spec.executable or ""
    if _needs_shell(run) or umask & _OWNER or executable.startswith("-") or "=" in executable:
        return None
    if any("${" in text for text in (executable, *arguments, *filter(None, environment.values()))):
        return None
    variables = {"PWD": run.directory, **environment, **dict.fromkeys(OWN_VARIABLES)}
    variables[JOB_ID] = run.job_id
    search_path = variables.get("PATH", inherited.get("PATH"))
    path = executable if "/" in executable else _find(executable, search_path)
    if path is None:
        return None
    encode = os.fsencode
    return Program(
        {encode(name): None if it is None else encode(it) for name, it in variables.items()},
        encode(run.directory),
        umask,
        (_encoded(spec.stdout_path), _encoded(spec.stderr_path)),
        encode(path),
        [encode(executable), *map(encode, arguments)],
    )


def _needs_shell(run: Run) -> bool:
    """Return True if a job asks for more than a program in a directory, with variables and files."""
    spec = run.spec
    is_launched = list(run.launch) != _SINGLE or run.sources_scripts or run.starts_processes or run.nodes
    is_prepared = run.plan or run.uses_home or run.preparations or run.post_launch
    is_set_up = spec.create_directory or spec.stdin_path or spec.container or not spec.inherit_environment
    # a shell appends to the output of earlier attempts, and takes `..` for the directory before a link
    is_different = run.attempt != 1 or ".." in run.directory.split("/")
    return bool(is_launched or is_prepared or is_set_up or is_different)


def _encoded(path: Path | None) -> bytes | None:
    return None if path is None else os.fsencode(path)


def _find(name: str, search_path: str | None) -> str | None:
    """Return the path of an executable; None if PATH does not lead there by absolute directories alone."""
    for directory in (search_path or "").split(":"):
        path = f"{directory}/{name}"
        if not directory.startswith("/"):
            return None
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113  text
            return path
    return None
