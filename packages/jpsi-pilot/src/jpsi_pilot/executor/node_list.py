"""The node list of a running job: which of its nodes each of its processes gets."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, resources

# Spreads processes evenly; the first nodes get one more where the numbers do not divide, as Flux does it.
_SPREAD = """\
for node in $JPSI_PILOT_NODES; do
  count=$(((left + nodes - 1) / nodes))
  left=$((left - count))
  nodes=$((nodes - 1))
  while [ "$count" -gt 0 ]; do
    echo "$node"
    count=$((count - 1))
  done
done"""


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine] | None:
    """Return shell that prints the node of each process; None if all are on the node that runs the shell."""
    requested = resources(spec)
    if requested.computed_node_count == 1:
        return None
    numbers = f"left={requested.computed_process_count} nodes={requested.computed_node_count}"
    return [ShellLine(line) for line in (numbers, *_SPREAD.splitlines())]
