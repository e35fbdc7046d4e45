"""The fakes of LSF 10.1 and of volclava 2.2, which is compatible with older versions of LSF.

Tests and `jpsi fake` run jobs on the fakes, without a real LSF.
"""

import functools
from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction, FakeScheduler, mpirun_commands

from .blaunch import blaunch, slots
from .control import PARAMETERS, QUEUE_LISTING, change
from .flavour import Flavour
from .history import bhist
from .listing import bjobs
from .submit import bsub


def commands_of(flavour: Flavour) -> Mapping[str, CommandFunction]:
    """Return the commands by name."""
    return {
        "bsub": functools.partial(bsub, flavour),
        "bjobs": functools.partial(bjobs, flavour),
        "bhist": functools.partial(bhist, flavour),
        "bparams": lambda _scheduler, _invocation: PARAMETERS,
        "bqueues": lambda _scheduler, _invocation: QUEUE_LISTING,
        "bkill": functools.partial(change, FakeScheduler.cancel, "terminated"),
        "bstop": functools.partial(change, FakeScheduler.hold, "stopped"),
        "bresume": functools.partial(change, FakeScheduler.release, "resumed"),
        **({"blaunch": blaunch} if flavour.is_lsf_10 else {}),
        **mpirun_commands(slots),
    }


def unreachable(command: str) -> CommandResult:
    """Return a command's output while mbatchd is down, with LSB_NTRIES=1; else LSF would retry for ever."""
    if command in {"blaunch", "mpiexec", "mpirun"}:
        return CommandResult(returncode=255, stderr=f"{command}: no task could be started: LIM is down\n")
    if command == "bhist":
        return CommandResult(returncode=255, stderr="ls_getclustername(): LIM is down; try later\n")
    end = ". Job not submitted.\n" if command == "bsub" else "\n"
    return CommandResult(returncode=255, stderr=f"Connection refused by server{end}")
