"""Checks on this machine, before a submission, that a job can run here.

The engines refuse a spec whose directory or scripts are missing at once, instead of having the job fail
later.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jpsi.plugin import JobSpec

_CHECK_SECONDS = 10


def expand_home(path: Path, home: Path | None = None) -> Path:
    """Return a path with a leading `~/`, but no `~user/`, replaced by a home directory.

    The home directory is `home`, or that of this user.
    """
    return (home or Path.home()) / Path(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def local_problems(spec: JobSpec, shell: str) -> list[str]:
    """Return the reasons why a job cannot run on this machine as it is now."""
    problems = []
    current = _current_directory()
    if spec.directory is None and current is None:
        problems.append("directory is not given, and the current directory was removed")
    directory = None if spec.directory is None else expand_home(spec.directory)
    if directory is not None and not spec.create_directory and not os.path.isdir(directory):  # noqa: PTH112  never raises
        problems.append(f"directory {str(spec.directory)!r} does not exist; make it, or set create_directory")
    for name in ("pre_launch", "post_launch"):
        script = getattr(spec, name)
        if script is None:
            continue
        path = expand_home(script)
        if not _is_staged_in(path, spec, directory or Path(current or "/")):
            problems += _script_problems(name, (directory or Path()) / path, shell)
    return problems


def _is_staged_in(script: Path, spec: JobSpec, directory: Path) -> bool:
    script_path = directory / script
    targets = [directory / expand_home(item.target) for item in spec.stage_in or ()]
    return any(target == script_path or target in script_path.parents for target in targets)


def _current_directory() -> str | None:
    """Return the current directory; None if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  not resolved, and called at every submit
    except FileNotFoundError:
        return None


def _script_problems(name: str, script: Path, shell: str) -> list[str]:
    if not os.path.isfile(script) or not os.access(script, os.R_OK):  # noqa: PTH113  never raises
        return [f"{name} {str(script)!r} is not a readable file"]
    try:
        checked = subprocess.run(  # noqa: S603  the configured shell reads the file and runs nothing
            [shell, "-n", os.path.abspath(script)],  # noqa: PTH100  ~/ is a directory of that name here
            capture_output=True,
            check=False,
            timeout=_CHECK_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return [f"{name} {str(script)!r} could not be checked: {e}"]
    if checked.returncode != 0:
        message = "; ".join(checked.stderr.decode(errors="replace").split("\n")).strip("; ")
        return [f"{name} {str(script)!r} is not a POSIX shell script: {message}"]
    return []
