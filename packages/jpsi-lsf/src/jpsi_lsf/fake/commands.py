"""Collects the commands of the fakes for one flavour of LSF."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction, FakeScheduler, Invocation, mpirun_commands

from .blaunch import blaunch, slots
from .control import bkill, bparams, bqueues, bresume, bstop
from .flavour import Flavour
from .history import bhist
from .listing import bjobs
from .submit import bsub

_Flavoured = Callable[[Flavour, FakeScheduler, Invocation], CommandResult]


def commands_of(flavour: Flavour) -> Mapping[str, CommandFunction]:
    """Return the commands by name."""
    return {
        "bsub": _bind_flavour(bsub, flavour),
        "bjobs": _bind_flavour(bjobs, flavour),
        "bhist": _bind_flavour(bhist, flavour),
        "bparams": bparams,
        "bqueues": bqueues,
        "bkill": bkill,
        "bstop": bstop,
        "bresume": bresume,
        **({"blaunch": blaunch} if flavour.is_lsf_10 else {}),
        **mpirun_commands(slots),
    }


def _bind_flavour(command: _Flavoured, flavour: Flavour) -> CommandFunction:
    def call(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        return command(flavour, scheduler, invocation)

    return call


def unreachable(command: str) -> CommandResult:
    """Return a command's output while mbatchd is down, with LSB_NTRIES=1; else LSF would retry for ever."""
    if command in {"blaunch", "mpiexec", "mpirun"}:
        return CommandResult(returncode=255, stderr=f"{command}: no task could be started: LIM is down\n")
    if command == "bhist":
        return CommandResult(returncode=255, stderr="ls_getclustername(): LIM is down; try later\n")
    end = ". Job not submitted.\n" if command == "bsub" else "\n"
    return CommandResult(returncode=255, stderr=f"Connection refused by server{end}")
