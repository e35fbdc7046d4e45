"""Commands as shell text, for interfaces that accept only a shell script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jpsi.contract import Command, ShellLine, line, word

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# A name that begins a line inside a multi-line value is unset as well, which is harmless: it is no variable.
_NAMES = "env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'"


def command_lines(command: Command, not_found: ShellLine) -> Sequence[ShellLine]:
    r"""Return lines of POSIX shell that exec a command, with its environment; its `stdin` is ignored.

    Args:
        command: the command.
        not_found: the line to run if there is no such command; it must end the shell.

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
