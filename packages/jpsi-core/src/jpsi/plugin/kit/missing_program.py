"""Lines of shell that say why a launcher could not launch: a program is missing."""

from __future__ import annotations

from jpsi.contract import ShellLine, line, word


def need_program(name: str) -> list[ShellLine]:
    """The lines that end a job, with the launcher to blame, where a program is not to be found.

    They go first in what a launcher answers: to the shell a program that is missing is one that fails.
    """
    said = word(f"{name} is not on the PATH of the job:")
    return [
        ShellLine(f"{line('command', '-v', name)} >/dev/null 2>&1 || {{"),
        ShellLine(f'  echo {said} "${{PATH-}}" >"$_jpsi_log"'),
        ShellLine("  exit 127"),
        ShellLine("}"),
    ]
