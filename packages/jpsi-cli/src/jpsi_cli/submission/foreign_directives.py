"""Warns of a command that is a script with directives of a batch system, such as `#SBATCH`.

jpsi runs a command as it is, and would ignore them in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import jpsi
from jpsi.plugin import word

from .. import messages

# A comment whose first word is followed by an option, as a directive of any batch system.
_DIRECTIVE = re.compile(r"^#(?!!)\s?\S+\s+-", re.MULTILINE)
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh"}
# Directives stand at the beginning of a script.
_CHARACTERS = 1 << 16


def warn_of_directives(command: Sequence[str], directory: Path | None) -> None:
    """Warn if the command is a script whose directives jpsi ignores, and say how to convert them.

    Args:
        command: the command as typed.
        directory: the directory of the job, if one is set.
    """
    is_interpreted = len(command) > 1 and Path(command[0]).name in _SHELLS
    for file in command[is_interpreted : is_interpreted + 1]:
        path = (directory or Path()) / file
        system = _find_system(path)
        if system is not None:
            messages.warning(
                f"{file} has directives of {system}, which jpsi ignores here. To submit it with them: "
                f"jpsi convert {word(str(path))} > job.yaml, then jpsi submit -f job.yaml"
            )


def _find_system(path: Path) -> str | None:
    """Return the executor that understands the directives of a script; None if there are none."""
    try:
        if not path.is_file():
            # reading a pipe or a terminal would take what the job is to read
            return None
        with path.open(encoding="utf-8") as opened:
            text = opened.read(_CHARACTERS)
    except (OSError, ValueError):
        return None
    if not _DIRECTIVE.search(text):
        # most programs need no search among all executors
        return None
    try:
        return jpsi.read_script(text, path, Path()).executor
    except jpsi.JpsiError:
        # also a plugin that the user did not ask for and that fails
        return None
