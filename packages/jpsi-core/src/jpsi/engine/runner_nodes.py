"""The part of the runner's script that writes the file with the name of the node of each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jpsi.contract.shell import ShellLine, word
from jpsi.engine.runner_command import NODEFILES
from jpsi.engine.runner_frame import SETUP_CODE

#: The phase in which a job ends whose nodes are not known, as it stands in the exit marker.
NODES = "nodes"


def node_file(lines: Sequence[ShellLine], path: str) -> Iterator[str]:
    """The lines that write the file; what `lines` complain of goes to the job's standard error."""
    file = word(path)
    yield "("
    yield from lines
    yield f") </dev/null >{file} 2>&8 8>&- && [ -s {file} ] || _jpsi_end {NODES} {SETUP_CODE}"
    yield f"export {' '.join(f'{name}={file}' for name in NODEFILES)}"
