"""Renders the shell lines that print the node of each process, from the variables that Slurm sets."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, components, hookimpl, word

# sbatch(1), OUTPUT ENVIRONMENT VARIABLES: SLURM_TASKS_PER_NODE looks like `2(x3),1`. The list of one node is
# its plain name; then the lines do not run scontrol, which may not work on the node.
# Each component of a heterogeneous job has its own variables, whose names end with its number.
_NODES = """\
nodes=${SLURM_JOB_NODELIST%(of)s:?Slurm tells no nodes}
case $nodes in
*[[,]*) nodes=$(scontrol show hostnames "$nodes") || exit ;;
esac"""
_TASKS = "tasks=${SLURM_TASKS_PER_NODE%(of)s:?Slurm tells no tasks}"
_LINES = """\
echo "$nodes" | awk -v tasks="$tasks" '
  BEGIN {
    count = split(tasks, parts, ",")
    for (i = 1; i <= count; i++) {
      times = match(parts[i], /\\(x[0-9]+\\)/) ? substr(parts[i], RSTART + 2, RLENGTH - 3) : 1
      while (times-- > 0) here[++node] = parts[i] + 0
    }
  }
  { for (i = 0; i < here[NR]; i++) print }
'"""


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell lines that print one node per task, grouped by node, in the order of the ranks."""
    parts = components(spec.resources)
    if len(parts) == 1:
        return _render_lines(parts[0], "")
    return [line for group, part in enumerate(parts) for line in _render_lines(part, f"_HET_GROUP_{group}")]


def _render_lines(component: ResourceSpecV1, suffix: str) -> list[ShellLine]:
    uneven = _uneven_tasks(component)
    node_lines, default_tasks = _NODES % {"of": suffix}, _TASKS % {"of": suffix}
    tasks = default_tasks if uneven is None else f"tasks={word(uneven)}"
    return [ShellLine(line) for line in f"{node_lines}\n{tasks}\n{_LINES}".splitlines()]


def _uneven_tasks(resources: ResourceSpecV1) -> str | None:
    """Return the tasks per node in Slurm's notation if they differ between nodes; None if they do not.

    If they differ, Slurm's variable has the number of the fullest node for every node. srun follows the
    layout that is computed here: its launcher passes the node file to it as SLURM_HOSTFILE.
    """
    total, per_node = resources.computed_process_count, resources.processes_per_node
    if per_node is not None:
        full, remainder = divmod(total, per_node)
        tasks = f"{per_node}(x{full}),{remainder}" if full else f"{remainder}"
        return tasks if remainder else None
    if resources.node_count is not None:
        least, more = divmod(total, resources.node_count)
        return f"{least + 1}(x{more}),{least}(x{resources.node_count - more})" if more else None
    return None
