"""Builds the qsub command and parses the native id from its output."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, CommandResult, Script, SubmitContext, hookimpl
from jpsi.plugin.kit import require_one_id

from ..commands import gridengine

# sge_submit(1) of 8.1.9, ENVIRONMENTAL VARIABLES: the variables of a surrounding job. Grid Engine sets some
# for each job, and others only for some jobs, which would then inherit wrong values. SGE_ROOT, SGE_CELL,
# SGE_CLUSTER_NAME and the ports stay, as clients need them to reach Grid Engine.
_NOT_THIS_JOBS = (
    *(f"SGE_{rest}*" for rest in ("A", "BI", "CKPT_", "CWD_", "JOB_", "NOMSG", "O_", "RSH_", "ST", "TASK_")),
    *("ARC", "ENVIRONMENT", "JOB_*", "NHOSTS", "NQUEUES", "NSLOTS", "PE", "PE_*", "QUEUE", "REQNAME"),
    *("REQUEST", "RESTARTED"),
    # Functions that bash exports; jobs would get none of them, or only their first lines.
    "BASH_FUNC_*",
    *RANK_VARIABLES,
)
# These override options in a site's or user's sge_request(5) that make qsub wait for the job, or take the
# script for the name of a program.
_AS_EXPECTED = ("-terse", "-b", "n", "-sync", "n")

# The output with -terse, and without it, as a site's wrapper may remove the option
_SAID = r"^[ \t]*(?:Your {kind} )?([1-9][0-9]*){tasks}(?: \(\".*\"\) has been submitted)?[ \t]*\r?$"
_JOB = re.compile(_SAID.format(kind="job", tasks=""), re.MULTILINE)
_ARRAY = re.compile(_SAID.format(kind="job-array", tasks=r"\.[0-9]+-[0-9]+:[0-9]+"), re.MULTILINE)


@hookimpl
def submit(script: Script) -> Command:
    """Return the qsub command for a script, which qsub reads from standard input."""
    return gridengine("qsub", *_AS_EXPECTED, stdin=script.text, unset=_NOT_THIS_JOBS, environment={})


@hookimpl
def parse_submit(result: CommandResult, context: SubmitContext) -> str:
    """Return the native id of the job or array from qsub's output, which may contain other text."""
    form = _JOB if context.elements is None else _ARRAY
    return require_one_id(form.findall(result.stdout), result.stdout)
