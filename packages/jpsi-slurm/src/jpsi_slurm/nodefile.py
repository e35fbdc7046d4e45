"""The shell that tells on which node each process of a job runs, from what Slurm tells the job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, hookimpl, word

# sbatch(1), OUTPUT ENVIRONMENT VARIABLES: SLURM_TASKS_PER_NODE is such as `2(x3),1`. The list of one node is
# its name, so that nothing needs to be asked, which may not be possible where the job runs.
_NODES = """\
nodes=${SLURM_JOB_NODELIST:?Slurm tells no nodes}
case $nodes in
*[[,]*) nodes=$(scontrol show hostnames "$nodes") || exit ;;
esac"""
_TOLD = "tasks=${SLURM_TASKS_PER_NODE:?Slurm tells no tasks}"
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
    """The lines, which print a node for each task, grouped by node, in the order of the ranks."""
    uneven = _uneven(spec.resources)
    tasks = _TOLD if uneven is None else f"tasks={word(uneven)}"
    return [ShellLine(it) for it in f"{_NODES}\n{tasks}\n{_LINES}".splitlines()]


def _uneven(resources: object) -> str | None:
    """The tasks on each node, as Slurm writes them, where they are not the same on all.

    There Slurm tells of as many on each as the fullest has. None leaves it to Slurm.
    """
    if not isinstance(resources, ResourceSpecV1):
        return None
    total, each = resources.computed_process_count, resources.processes_per_node
    if each is not None:
        full, rest = divmod(total, each)
        told = f"{each}(x{full}),{rest}" if full else f"{rest}"
        return told if rest else None
    if resources.node_count is not None:
        least, more = divmod(total, resources.node_count)
        return f"{least + 1}(x{more}),{least}(x{resources.node_count - more})" if more else None
    return None
