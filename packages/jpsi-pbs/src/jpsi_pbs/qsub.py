"""Submits a script with qsub: builds the command, and parses the native id from its output.

The engine runs the command. The executors `pbs` and `torque` share this module.
"""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin import RANK_VARIABLES, Command, CommandResult, Script, hookimpl
from jpsi.plugin.kit import require_one_id

from .job_names import VARIABLES
from .native_ids import IDS

# Variables of a surrounding job, as recorded, and those that change how qsub reads directives. Not all of
# PBS_*: clients need PBS_SERVER, PBS_DEFAULT, PBS_CONF_FILE and others to reach PBS.
_INHERITED_VARIABLES = (
    "PBS_ARRAY*",
    "PBS_DPREFIX",
    "PBS_ENVIRONMENT",
    "PBS_GPUFILE",
    "PBS_JOB*",
    "PBS_MICFILE",
    "PBS_MOMPORT",
    "PBS_NODE*",
    "PBS_NP",
    "PBS_NUM_*",
    "PBS_O_*",
    "PBS_QUEUE",
    "PBS_TASKNUM",
    "PBS_VERSION",
    "PBS_VNODENUM",
    "PBS_WALLTIME",
    "ENVIRONMENT",
    "NCPUS",
    *VARIABLES,
    *RANK_VARIABLES,
)


def submit(qsub: Iterable[str], script: Script) -> Command:
    """Return the qsub command for a script, which qsub reads from standard input."""
    return Command(qsub, stdin=script.text, unset=_INHERITED_VARIABLES)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from qsub's output, which may contain other text."""
    lines = (line.strip() for line in result.stdout.splitlines())
    return require_one_id(filter(IDS.is_id, lines), result.stdout)
