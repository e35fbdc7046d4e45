"""How Flux's commands read and answer over a fake batch system, as those of flux-core 0.88 were recorded."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.fakes import CommandFunction, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .bulk import bulksubmit
from .changing import cancel, job
from .listing import jobs
from .running import run
from .submitting import batch, submit

__all__ = ["commands", "unreachable"]

_SUBCOMMANDS: Mapping[str, CommandFunction] = {
    "batch": batch,
    "bulksubmit": bulksubmit,
    "cancel": cancel,
    "job": job,
    "jobs": jobs,
    "run": run,
    "submit": submit,
}


def _flux(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    name = invocation.arguments[0] if invocation.arguments else ""
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
