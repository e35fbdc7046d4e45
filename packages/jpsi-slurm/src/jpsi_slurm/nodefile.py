"""The shell that tells on which node each process of a job runs, from what Slurm tells the job."""

from __future__ import annotations

from jpsi.plugin import ShellLine, hookimpl

# sbatch(1), OUTPUT ENVIRONMENT VARIABLES: SLURM_TASKS_PER_NODE is such as `2(x3),1`. The list of one node is
# its name, so that nothing needs to be asked, which may not be possible where the job runs.
_LINES = """\
nodes=${SLURM_JOB_NODELIST:?Slurm tells no nodes}
case $nodes in
*[[,]*) nodes=$(scontrol show hostnames "$nodes") || exit ;;
esac
echo "$nodes" | awk -v tasks="${SLURM_TASKS_PER_NODE:?Slurm tells no tasks}" '
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
def nodes() -> list[ShellLine]:
    """The lines, which print a node for each task, grouped by node, in the order of the ranks."""
    return [ShellLine(line) for line in _LINES.splitlines()]
