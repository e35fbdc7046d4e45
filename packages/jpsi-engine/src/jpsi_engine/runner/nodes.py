"""The part of the runner's script that writes the file with the name of the node of each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import ShellLine, word
from jpsi_engine.runner.command import NODEFILES
from jpsi_engine.verdict import NODES, SETUP_CODE


def node_file(lines: Sequence[ShellLine], path: str, *, is_needed: bool) -> Iterator[str]:
    """The lines that write the file; what `lines` complain of goes to the job's standard error.

    If that fails, a job that needs the file ends, and another has no variable that names one.
    """
    file = word(path)
    exported = f"export {' '.join(f'{name}={file}' for name in NODEFILES)}"
    yield "("
    yield from lines
    written = f") </dev/null >{file} 2>&8 8>&- && [ -s {file} ]"
    if is_needed:
        yield f"{written} || _jpsi_end {NODES} {SETUP_CODE}"
        yield exported
    else:
        yield f"{written} &&"
        yield f"  {exported} ||"
        yield f"  {unset()}"


def unset() -> str:
    """The line of a job without such a file: the variables may be those of a job around this one."""
    return f"unset {' '.join(NODEFILES)}"


def withheld(path: str) -> str:
    """The line that keeps the variables from "$@", which is given them, if the file was not written."""
    return f'[ -s {word(path)} ] || set -- /usr/bin/env {" ".join(f"-u {name}" for name in NODEFILES)} "$@"'
