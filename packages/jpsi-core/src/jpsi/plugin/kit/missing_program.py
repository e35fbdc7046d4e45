"""Shell lines that report why a launcher could not launch: a program is missing."""

from __future__ import annotations

from jpsi.contract import ShellLine, line, word


def need_program(name: str) -> list[ShellLine]:
    """Return lines that end a job, and blame the launcher, if a program is not installed.

    They must come first in a launcher's lines: the shell cannot tell a missing program from one that fails.
    """
    said = word(f"{name} is not on the PATH of the job:")
    return [
        ShellLine(f"{line('command', '-v', name)} >/dev/null 2>&1 || {{"),
        ShellLine(f'  echo {said} "${{PATH-}}" >"$_jpsi_log"'),
        ShellLine("  exit 127"),
        ShellLine("}"),
    ]
