"""How Flux's commands read and answer over a fake batch system, as those of flux-core 0.88 were recorded."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.fakes import CommandFunction, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .bulk import bulksubmit
from .changing import cancel, job
from .instance import COMMANDS
from .listing import jobs
from .running import run
from .submitting import batch, submit

__all__ = ["commands", "unreachable"]


def _queue(_scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Show the one queue, which has no name, in the one form that is asked for."""
    if invocation.arguments[1:4] != ("list", "-n", "-o"):
        return CommandResult(returncode=2, stderr="usage: flux-queue [-h] {list}\n")
    return CommandResult(returncode=0, stdout="|enabled|started|inf|inf|0-inf\n")


_SUBCOMMANDS: Mapping[str, CommandFunction] = {
    "batch": batch,
    "bulksubmit": bulksubmit,
    "cancel": cancel,
    "job": job,
    "jobs": jobs,
    "queue": _queue,
    "run": run,
    "submit": submit,
    **COMMANDS,
}


def _flux(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    name = invocation.arguments[0] if invocation.arguments else ""
    if name == "--version":
        return CommandResult(returncode=0, stdout="commands:    \t\t0.88.0\n")
    if name not in _SUBCOMMANDS:
        return CommandResult(
            returncode=1, stderr=f"flux: `{name}' is not a flux command.  See 'flux --help'\n"
        )
    return _SUBCOMMANDS[name](scheduler, invocation)


#: The commands by name.
commands: Mapping[str, CommandFunction] = {"flux": _flux}


def unreachable(command: str) -> CommandResult:
    """What a command says while the broker is not there."""
    why = "Unable to connect to Flux: broker socket /run/flux/local was not found"
    return CommandResult(returncode=1, stderr=f"{command}: ERROR: {why}\n")
