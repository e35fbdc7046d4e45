"""Handing a job over to bsub, and finding the job's id in what bsub printed."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, Script

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


def submit(script: Script) -> Command:
    """The command that submits a script; bsub reads directives from standard input alone."""
    return Command(["bsub"], stdin=script.text, unset=_NOT_THIS_JOBS, environment=_ONCE)


def native_id(output: str) -> str:
    r"""The job's id in what bsub printed, whatever else stands around it.

    >>> native_id("Welcome!\nJob <4711> is submitted to default queue <normal>.\n")
    '4711'

    Raises:
        ValueError: there is no id in it, or more than one.
    """
    found = set(_ID.findall(output))
    if len(found) != 1:
        what = "no job id" if not found else f"several job ids ({', '.join(sorted(found))})"
        msg = f"{what} in the answer of bsub: {output.strip()[:500]!r}"
        raise ValueError(msg)
    return str(found.pop())
