"""Checks on this machine, before a submission, that a job can run here, and by which shell.

The engines refuse a spec whose directory or scripts are missing at once, instead of having the job fail
later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jpsi.plugin import JobSpec
from jpsi_engine.runner.environment_setup import script_path

_CHECK_SECONDS = 10
# The kernel reads no more of the first line.
_MAX_LINE = 256
# Shells that run POSIX shell scripts as they are, other than sh. Of their options, only that of a login shell
# is used: such as -e would end the runner itself.
_INTERPRETER = re.compile(
    rb"#![ \t]*(?:(?P<path>/\S*/(?:bash|ksh|ksh93|mksh))|/\S*/env[ \t]+(?P<name>bash|ksh|ksh93|mksh))"
    rb"(?:[ \t]+(?P<options>-\S+))?[ \t]*\n"
)
_LOGIN = (b"-l", b"--login")


def expand_home(path: Path, home: Path | None = None) -> Path:
    """Return a path with a leading `~/`, but no `~user/`, replaced by a home directory.

    The home directory is `home`, or that of this user.
    """
    return (home or Path.home()) / Path(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def job_shell(spec: JobSpec, shell: Sequence[str]) -> list[str]:
    """Return the words that run the script of a job: `shell`, unless pre_launch or post_launch names another.

    A script names a shell by its first line, such as `#!/bin/bash`. It is sourced by that shell, so that the
    job gets the functions that the script exports. A line that names `sh`, or a program that does not run
    POSIX shell scripts, has no effect, and neither has a shell that this machine lacks, or a file that it
    cannot read yet.
    """
    directory = Path() if spec.directory is None else expand_home(spec.directory)
    named = (_interpreter(directory / expand_home(it)) for it in _scripts(spec).values())
    return next(filter(None, named), list(shell))


def _scripts(spec: JobSpec) -> dict[str, Path]:
    scripts = {"pre_launch": spec.pre_launch, "post_launch": spec.post_launch}
    return {name: script for name, script in scripts.items() if script is not None}


def _interpreter(script: Path) -> list[str]:
    try:
        with script.open("rb") as file:
            found = _INTERPRETER.match(file.readline(_MAX_LINE))
    except OSError:
        return []
    if found is None:
        return []
    path = shutil.which(os.fsdecode(found["path"] or found["name"]))
    return [] if path is None else [path, *(["-l"] if found["options"] in _LOGIN else [])]


def local_problems(spec: JobSpec, shell: str) -> list[str]:
    """Return the reasons why a job cannot run on this machine as it is now."""
    problems = []
    current = _current_directory()
    if spec.directory is None and current is None:
        problems.append("directory is not given, and the current directory was removed")
    directory = Path() if spec.directory is None else expand_home(spec.directory)
    if spec.directory is not None and not spec.create_directory and not os.path.isdir(directory):  # noqa: PTH112  never raises
        problems.append(f"directory {str(spec.directory)!r} does not exist; make it, or set create_directory")
    place = Path(current or "/") / directory
    for name, script in _scripts(spec).items():
        if not _is_staged_in(expand_home(script), spec, place):
            problems += _script_problems(name, directory / expand_home(script), shell)
    for entry in spec.environment_setup or ():
        sourced = script_path(entry)
        file = None if sourced is None else directory / expand_home(sourced)
        if sourced and file and not _is_readable(file) and not _is_staged_in(sourced, spec, place):
            problems.append(f"environment_setup {entry!r}: {str(file)!r} is not a readable file")
    named = {tuple(_interpreter(directory / expand_home(it))) for it in _scripts(spec).values()}
    if len(named - {()}) > 1:
        problems.append("pre_launch and post_launch name different shells in their first lines")
    return problems


def _is_readable(file: Path) -> bool:
    return os.path.isfile(file) and os.access(file, os.R_OK)  # noqa: PTH113  never raises


def _is_staged_in(script: Path, spec: JobSpec, directory: Path) -> bool:
    path = directory / script
    targets = [directory / expand_home(item.target) for item in spec.stage_in or ()]
    return any(target == path or target in path.parents for target in targets)


def _current_directory() -> str | None:
    """Return the current directory; None if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  not resolved, and called at every submit
    except FileNotFoundError:
        return None


def _script_problems(name: str, script: Path, shell: str) -> list[str]:
    if not _is_readable(script):
        return [f"{name} {str(script)!r} is not a readable file"]
    try:
        checked = subprocess.run(  # noqa: S603  the configured shell reads the file and runs nothing
            [*(_interpreter(script) or [shell]), "-n", os.path.abspath(script)],  # noqa: PTH100  ~/ is a directory of that name here
            capture_output=True,
            check=False,
            timeout=_CHECK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return [f"{name} {str(script)!r} could not be checked: {e}"]
    if checked.returncode != 0:
        message = "; ".join(checked.stderr.decode(errors="replace").split("\n")).strip("; ")
        kind = f"script for {' '.join(words)}" if (words := _interpreter(script)) else "POSIX shell script"
        return [f"{name} {str(script)!r} is not a {kind}: {message}"]
    return []
