"""Submits a script with qsub: builds the command, and parses the native id from its output.

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
    Script,
    ShellLine,
    SubmitContext,
    hookimpl,
    line,
    resources,
)
from jpsi.plugin.kit import require_one_id

from .commands import gridengine_command

# sge_submit(1) of 8.1.9, ENVIRONMENTAL VARIABLES: the variables of a surrounding job. Grid Engine sets some
# for each job, and others only for some jobs, which would then inherit wrong values. SGE_ROOT, SGE_CELL,
# SGE_CLUSTER_NAME and the ports stay, as clients need them to reach Grid Engine.
_INHERITED_VARIABLES = (
    *(
        f"SGE_{prefix}*"
        for prefix in ("A", "BI", "CKPT_", "CWD_", "JOB_", "NOMSG", "O_", "RSH_", "ST", "TASK_")
    ),
    *("ARC", "ENVIRONMENT", "JOB_*", "NHOSTS", "NQUEUES", "NSLOTS", "PE", "PE_*", "QUEUE", "REQNAME"),
    *("REQUEST", "RESTARTED"),
    # Functions that bash exports; jobs would get none of them, or only their first lines.
    "BASH_FUNC_*",
    *RANK_VARIABLES,
)
# These override options in a site's or user's sge_request(5) that make qsub wait for the job, or take the
# script for the name of a program.
_OPTIONS = ("-terse", "-b", "n", "-sync", "n")

# The output with -terse, and without it, as a site's wrapper may remove the option
_SUBMITTED = r"^[ \t]*(?:Your {kind} )?([1-9][0-9]*){tasks}(?: \(\".*\"\) has been submitted)?[ \t]*\r?$"
_JOB_SUBMITTED = re.compile(_SUBMITTED.format(kind="job", tasks=""), re.MULTILINE)
_ARRAY_SUBMITTED = re.compile(
    _SUBMITTED.format(kind="job-array", tasks=r"\.[0-9]+-[0-9]+:[0-9]+"), re.MULTILINE
)

# sge_pe(5), $pe_hostfile: lines with a node and the number of the job's slots on it, one line per queue that
# the slots come from
_AWK_NODES = (
    "{ if (!($1 in slots)) node[++count] = $1; slots[$1] += $2 } "
    "END { for (i = 1; i <= count; i++) for (left = slots[node[i]]; left >= cores && report < processes; "
    "left -= cores) { print node[i]; report++ } }"
)


@hookimpl
def submit(script: Script) -> Command:
    """Return the qsub command for a script, which qsub reads from standard input."""
    return gridengine_command(
        "qsub", *_OPTIONS, stdin=script.text, unset=_INHERITED_VARIABLES, environment={}
    )


@hookimpl
def parse_submit(result: CommandResult, context: SubmitContext) -> str:
    """Return the native id of the job or array from qsub's output, which may contain other text."""
    pattern = _JOB_SUBMITTED if context.elements is None else _ARRAY_SUBMITTED
    return require_one_id(pattern.findall(result.stdout), result.stdout)


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell lines that print the node of each process; each core of a process is a slot."""
    requested = resources(spec)
    cores, processes = requested.cpu_cores_per_process or 1, requested.computed_process_count
    awk = line("awk", f"-vcores={cores}", f"-vprocesses={processes}", _AWK_NODES)
    return [ShellLine(f'if [ -n "${{PE_HOSTFILE-}}" ]; then {awk} "$PE_HOSTFILE"; else uname -n; fi')]
