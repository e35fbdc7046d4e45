"""Renders the lines of the runner's script that write the node file: the node name of each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import ShellLine, word
from jpsi_engine.runner.own_variables import NODEFILES
from jpsi_engine.verdict import NODES, SETUP_CODE


def write_node_file(lines: Sequence[ShellLine], path: str, *, is_needed: bool) -> Iterator[str]:
    """Yield the lines that write the node file; errors of `lines` go to the job's standard error.

    If the lines fail, a job that needs the file ends. Another job runs without the variables that name the
    file.
    """
    file = word(path)
    export_line = f"export {' '.join(f'{name}={file}' for name in NODEFILES)}"
    yield "("
    yield from lines
    write_line = f") </dev/null >{file} 2>&8 8>&- && [ -s {file} ]"
    if is_needed:
        yield f"{write_line} || _jpsi_end {NODES} {SETUP_CODE}"
        yield export_line
    else:
        yield f"{write_line} &&"
        yield f"  {export_line} ||"
        yield f"  {unset_node_variables()}"


def unset_node_variables() -> str:
    """Return the line that unsets the variables, for a job without a node file.

    A surrounding job may have set them.
    """
    return f"unset {' '.join(NODEFILES)}"


def drop_node_variables(path: str) -> str:
    """Return the line that removes the variables from the command in "$@" if the file was not written."""
    return f'[ -s {word(path)} ] || set -- /usr/bin/env {" ".join(f"-u {name}" for name in NODEFILES)} "$@"'
