"""Handing a job over to bsub, and finding the job's id in what bsub printed."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, CommandResult, Script, hookimpl
from jpsi.plugin.kit import the_one_id

# "Environment variable reference" of LSF 10.1. BSUB_* hide the id, wait for the job, or submit none; LSB_*
# are what a surrounding job leaves, and what the user has set for other jobs, but for LSB_DEFAULT*, which
# choose what a job leaves open. LSF_* are how LSF is reached.
_NOT_THIS_JOBS = (
    "BSUB_*",
    *(f"LSB_{letter}*" for letter in "ABCEFGHIJKLMNOPQRSTUVWXYZ"),
    *("LSB_DA*", "LSB_DI*", "LSB_DJ*", "LSB_DO*"),
    *("LS_EXEC_T", "LS_EXITSTATUS", "LS_JOBPID", "LS_SUBCWD"),
    *RANK_VARIABLES,
)
# bsub sends the job again each time that mbatchd takes longer than 10 s to answer, and each request makes a
# job. The one that is sent now may still be there although bsub says that it is not.
_ONCE = {"LSB_NTRIES": "1"}

_ID = re.compile(r"\bJob <([1-9][0-9]*)> is submitted to ")


@hookimpl
def submit(script: Script) -> Command:
    """The command that submits a script; bsub reads directives from standard input alone."""
    return Command(["bsub"], stdin=script.text, unset=_NOT_THIS_JOBS, environment=_ONCE)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """The job's id in what bsub printed, whatever else stands around it."""
    return the_one_id(_ID.findall(result.stdout), result.stdout)
