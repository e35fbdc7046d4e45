"""The variables that the runner itself gives to a job; a variable of the spec with such a name is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from jpsi.plugin import word

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
    """Yield the lines that export the variables, but for those about nodes, which `nodes` exports."""
    yield f"export {JOB_ID}={word(job_id)}"
