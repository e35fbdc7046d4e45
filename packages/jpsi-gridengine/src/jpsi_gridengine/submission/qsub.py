"""Handing a job over to qsub, and finding the job's id in what qsub printed."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, CommandResult, Script, SubmitContext, hookimpl
from jpsi.plugin.kit import the_one_id

from ..commands import gridengine

# sge_submit(1) of 8.1.9, ENVIRONMENTAL VARIABLES: what a surrounding job leaves. Some are set anew for each
# job, others only for some, so that they would be taken for this job's. SGE_ROOT, SGE_CELL, SGE_CLUSTER_NAME
# and the ports are not among them, by which Grid Engine is reached.
_NOT_THIS_JOBS = (
    *(f"SGE_{rest}*" for rest in ("A", "BI", "CKPT_", "CWD_", "JOB_", "NOMSG", "O_", "RSH_", "ST", "TASK_")),
    *("ARC", "ENVIRONMENT", "JOB_*", "NHOSTS", "NQUEUES", "NSLOTS", "PE", "PE_*", "QUEUE", "REQNAME"),
    *("REQUEST", "RESTARTED"),
    # Functions that bash exports: jobs do not get them, or get only their first lines.
    "BASH_FUNC_*",
    *RANK_VARIABLES,
)
# What stands in a site's or a user's sge_request(5) must neither have qsub wait for the job nor take the
# script for the name of a program.
_AS_EXPECTED = ("-terse", "-b", "n", "-sync", "n")

# What -terse prints, and what it replaces, should a site's wrapper take it away
_SAID = r"^[ \t]*(?:Your {kind} )?([1-9][0-9]*){tasks}(?: \(\".*\"\) has been submitted)?[ \t]*\r?$"
_JOB = re.compile(_SAID.format(kind="job", tasks=""), re.MULTILINE)
_ARRAY = re.compile(_SAID.format(kind="job-array", tasks=r"\.[0-9]+-[0-9]+:[0-9]+"), re.MULTILINE)


@hookimpl
def submit(script: Script) -> Command:
    """The command that submits a script, which it reads from standard input."""
    return gridengine("qsub", *_AS_EXPECTED, stdin=script.text, unset=_NOT_THIS_JOBS, environment={})


@hookimpl
def parse_submit(result: CommandResult, context: SubmitContext) -> str:
    """The id of the job or the array in what qsub printed, whatever else stands around it."""
    form = _JOB if context.elements is None else _ARRAY
    return the_one_id(form.findall(result.stdout), result.stdout)
