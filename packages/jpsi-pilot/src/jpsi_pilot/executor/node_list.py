"""How a running job finds out on which nodes its processes are."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, resources

# Spread evenly, the first nodes having one more where it does not come out even, as Flux does it.
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
    """Shell that prints the node of each process; None where all are on the node that the shell is on."""
    asked = resources(spec)
    if asked.computed_node_count == 1:
        return None
    numbers = f"left={asked.computed_process_count} nodes={asked.computed_node_count}"
    return [ShellLine(line) for line in (numbers, *_SPREAD.splitlines())]
