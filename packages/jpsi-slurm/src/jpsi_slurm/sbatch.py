"""Submits a script with sbatch: builds the command, and parses the native id from its output.

The engine runs the command. `nodes` renders the shell lines by which a running job lists the node of each of
its processes.
"""

from __future__ import annotations

import re

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    CommandResult,
    JobSpec,
    ResourceSpecV1,
    Script,
    ShellLine,
    SubmitContext,
    components,
    hookimpl,
    resources,
    word,
)
from jpsi.plugin.kit import require_one_id

from .commands import slurm_command
from .custom_options import CUSTOM

# sbatch(1) and srun(1), INPUT ENVIRONMENT VARIABLES: settings of the user for other jobs, which would
# override directives; OUTPUT ENVIRONMENT VARIABLES: those of a surrounding job. These are all of SLURM_*
# except SLURM_CONF, SLURM_JWT and SLURM_SACK*, which clients need to reach Slurm, and SLURM_MPI_TYPE, without
# which ranks may not find each other.
_INHERITED_VARIABLES = (
    "SBATCH_*",
    *(f"SLURM_{letter}*" for letter in "ABDEFGHIKLNOPQRTUVWXYZ"),
    *("SLURM_CL*", "SLURM_COM*", "SLURM_CONS*", "SLURM_CONT*", "SLURM_COR*", "SLURM_CP*", "SLURM_CR*"),
    *("SLURM_JO*", "SLURM_ME*"),
    *("SLURM_SC*", "SLURM_SE*", "SLURM_SH*", "SLURM_SI*", "SLURM_SP*", "SLURM_SR*", "SLURM_ST*", "SLURM_SU*"),
    "SLURMD_*",
    "SRUN_*",
    *RANK_VARIABLES,
)

# The output with --parsable, and without it, as a site's wrapper may remove the option
_ID = re.compile(
    r"^[ \t]*(?:Submitted batch job )?([0-9]+)(?:;[^\s;]+| on cluster \S+)?[ \t]*\r?$", re.MULTILINE
)

# sbatch(1), OUTPUT ENVIRONMENT VARIABLES: SLURM_TASKS_PER_NODE looks like `2(x3),1`. The list of one node is
# its plain name; then the lines do not run scontrol, which may not work on the node.
# Each component of a heterogeneous job has its own variables, whose names end with its number.
_NODES = """\
nodes=${SLURM_JOB_NODELIST%(of)s:?Slurm reports no nodes}
case $nodes in
*[[,]*) nodes=$(scontrol show hostnames "$nodes") || exit ;;
esac"""
_TASKS = "tasks=${SLURM_TASKS_PER_NODE%(of)s:?Slurm reports no tasks}"
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
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """Return the sbatch command for a script, which sbatch reads from standard input."""
    # srun has one such variable for all components; the launcher passes the cores of each to srun
    cores = None if len(components(spec.resources)) > 1 else resources(spec).cpu_cores_per_process
    return slurm_command(
        context.site,
        "sbatch",
        "--parsable",
        # The script has the same option; the accounting keeps this command line, which ends with the tag.
        f"--comment={CUSTOM.merged({'comment': context.tag}, spec)['comment']}",
        stdin=script.text,
        unset=_INHERITED_VARIABLES,
        # The job inherits sbatch's environment. srun of Slurm 22.05 to 23.02 gives each task one CPU unless
        # this variable is set.
        environment={} if cores is None else {"SRUN_CPUS_PER_TASK": str(cores)},
    )


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from sbatch's output, which may contain other text."""
    return require_one_id(_ID.findall(result.stdout), result.stdout)


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
