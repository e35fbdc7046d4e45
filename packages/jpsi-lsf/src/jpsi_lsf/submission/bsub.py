"""Builds the bsub command and parses the native id from its output."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, CommandResult, Script, hookimpl
from jpsi.plugin.kit import require_one_id

# "Environment variable reference" of LSF 10.1. BSUB_* hide the id, wait for the job, or submit nothing; LSB_*
# come from a surrounding job, or are settings of the user for other jobs. LSB_DEFAULT* stay, as they choose
# defaults for what a job leaves open, and LSF_*, as clients need them to reach LSF.
_INHERITED_VARIABLES = (
    "BSUB_*",
    *(f"LSB_{letter}*" for letter in "ABCEFGHIJKLMNOPQRSTUVWXYZ"),
    *("LSB_DA*", "LSB_DI*", "LSB_DJ*", "LSB_DO*"),
    *("LS_EXEC_T", "LS_EXITSTATUS", "LS_JOBPID", "LS_SUBCWD"),
    *RANK_VARIABLES,
)
# bsub repeats its request whenever mbatchd takes longer than 10 s to answer, and each request makes a job.
# Even with a single request, LSF may have the job although bsub reports a failure.
_ONCE = {"LSB_NTRIES": "1"}

_ID = re.compile(r"\bJob <([1-9][0-9]*)> is submitted to ")


@hookimpl
def submit(script: Script) -> Command:
    """Return the bsub command for a script; bsub reads directives from standard input only."""
    return Command(["bsub"], stdin=script.text, unset=_INHERITED_VARIABLES, environment=_ONCE)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from bsub's output, which may contain other text."""
    return require_one_id(_ID.findall(result.stdout), result.stdout)
