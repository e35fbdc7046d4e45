"""Why a job cannot run on this machine as it is now: what only a look at the machine tells."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jpsi.model.spec import JobSpec


def problems_here(spec: JobSpec, shell: str) -> list[str]:
    """Why a job cannot run on this machine as it is now."""
    problems = []
    directory = None if spec.directory is None else spec.directory.expanduser()
    if directory is not None and not spec.create_directory and not directory.is_dir():
        problems.append(f"directory {str(spec.directory)!r} does not exist; make it, or set create_directory")
    for name in ("pre_launch", "post_launch"):
        script = getattr(spec, name)
        if script is not None:
            problems += _script_problems(name, (directory or Path()) / script.expanduser(), shell)
    return problems


def _script_problems(name: str, script: Path, shell: str) -> list[str]:
    if not os.access(script, os.R_OK):
        return [f"{name} {str(script)!r} cannot be read"]
    checked = subprocess.run(  # noqa: S603  the configured shell reads the file and runs nothing
        [shell, "-n", str(script.absolute())], capture_output=True, text=True, check=False
    )
    if checked.returncode != 0:
        return [f"{name} {str(script)!r} is no POSIX shell script: {checked.stderr.strip()}"]
    return []
