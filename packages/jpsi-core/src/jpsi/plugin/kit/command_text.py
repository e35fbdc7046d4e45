"""A command as shell text, for where only a shell can be told what to run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.contract import Command, ShellLine, line, word

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# A name that stands at the beginning of a line in the middle of a value may be unset as well: there is none.
_NAMES = "env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'"


def command_lines(command: Command, not_found: ShellLine) -> Sequence[ShellLine]:
    r"""Lines of POSIX shell that become a command, with its environment; standard input is not looked at.

    Args:
        command: what to run.
        not_found: what to do where there is no such command; it must end the shell.

    >>> print(*command_lines(Command(["ls", "a b"], environment={"B": "1"}), line("exit", "127")), sep="\n")
    command -v ls >/dev/null 2>&1 || { exit 127; }
    exec env 'B=1' ls 'a b'
    """
    return list(_lines(command, not_found))


def _lines(command: Command, not_found: ShellLine) -> Iterator[ShellLine]:
    named = [name for name in command.unset if _NAME.match(name)]
    prefixes = [name[:-1] for name in command.unset if name.endswith("*") and _NAME.match(name[:-1])]
    if named:
        yield line("unset", *named)
    if prefixes:
        patterns = " | ".join(f"{word(prefix)}*" for prefix in prefixes)
        case = f'case $_jpsi_name in {patterns}) unset "$_jpsi_name" ;; esac'
        yield ShellLine(f"for _jpsi_name in $({_NAMES}); do {case}; done")
    yield ShellLine(f"{line('command', '-v', command.argv[0])} >/dev/null 2>&1 || {{ {not_found}; }}")
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    yield line("exec", *(["env", *variables] if variables else []), *command.argv)
