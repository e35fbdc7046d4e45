"""The variables that the runner itself gives to a job, and the node file that some of them name.

They are JPSI_JOB_ID, JPSI_NODEFILE and PSIJ_NODEFILE. The spec cannot set them: such a variable is dropped,
as it may come from a surrounding job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.plugin import ShellLine, word
from jpsi_engine.verdict import NODES, SETUP_CODE

#: The variable from which a job reads its id.
JOB_ID = "JPSI_JOB_ID"
#: The variables from which a job reads the name of the file with the nodes of its processes.
NODEFILES = ("JPSI_NODEFILE", "PSIJ_NODEFILE")
#: The names of all of them.
OWN_VARIABLES = frozenset({JOB_ID, *NODEFILES})


def own_values(job_id: str, node_file: str | None) -> dict[str, str]:
    """Return the variables of a job with their values; those about nodes only if it has a node file."""
    return {JOB_ID: job_id} | ({} if node_file is None else dict.fromkeys(NODEFILES, node_file))


def export_own_variables(job_id: str) -> Iterator[str]:
    """Yield the lines that export the variables, except those that name the node file."""
    yield f"export {JOB_ID}={word(job_id)}"


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
