"""Finds out whether the interpreter exists that the first line of a script names."""

from __future__ import annotations

import re
from pathlib import Path

# More than any system reads of the first line.
_BYTES = 4096
# Linux passes all that follows the interpreter as one argument.
_FIRST_LINE = re.compile(r"#![ \t]*(?P<interpreter>[^ \t\n]+)[ \t]*(?P<argument>[^\n]*)")
_CARRIAGE_RETURN = "\r"


def find_missing_interpreter(script: Path, directory: Path) -> str | None:
    r"""Return the interpreter that the first line of a script names, if there is none on this machine.

    A script with Windows line ends names one that ends with `\r`, also by `#!/usr/bin/env python3`. The
    result is None as well if the file is no script, or cannot be read; pipes and devices are not read.

    Args:
        script: the path of the script.
        directory: the directory in which the script is started.
    """
    try:
        if not script.is_file():
            return None
        with script.open("rb") as opened:
            match = _FIRST_LINE.match(opened.read(_BYTES).decode(errors="surrogateescape"))
        return None if match is None else _find_missing(match["interpreter"], match["argument"], directory)
    except OSError:
        return None


def _find_missing(interpreter: str, argument: str, directory: Path) -> str | None:
    if not (directory / interpreter).exists():
        return interpreter
    is_searched = Path(interpreter).name == "env" and not argument.startswith("-")
    return argument if is_searched and has_windows_end(argument) else None


def has_windows_end(interpreter: str) -> bool:
    """Return True if the line that names an interpreter ends as lines of Windows do: no machine has that."""
    return interpreter.endswith(_CARRIAGE_RETURN)


def describe_missing_interpreter(script: str, shown_path: str, interpreter: str) -> str:
    """Return a sentence about a script without its interpreter; `shown_path` is quoted for a shell."""
    way_out = f" (it has Windows line ends: dos2unix {shown_path})" if has_windows_end(interpreter) else ""
    return f"{script} exists, but its first line names an interpreter that does not: {interpreter!r}{way_out}"
