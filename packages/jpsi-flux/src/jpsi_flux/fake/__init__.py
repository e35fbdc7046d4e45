"""The fake of Flux: its commands over a fake batch system, after recordings of flux-core 0.88.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction, FakeScheduler, Invocation, refuse_if

from .bulk import bulksubmit
from .control import COMMANDS, cancel, job
from .flux_run import run
from .listing import jobs
from .submit import batch, submit

_SUBCOMMANDS: Mapping[str, CommandFunction] = {
    "batch": batch,
    "bulksubmit": bulksubmit,
    "cancel": cancel,
    "job": job,
    "jobs": jobs,
    "run": run,
    "submit": submit,
    **COMMANDS,
}


def _flux(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult | str:
    name = invocation.arguments[0] if invocation.arguments else ""
    if name == "--version":
        return "commands:    \t\t0.88.0\n"
    refuse_if({f"flux: `{name}' is not a flux command.  See 'flux --help'": name not in _SUBCOMMANDS}, 1)
    return _SUBCOMMANDS[name](scheduler, invocation)


#: The commands by name.
commands: Mapping[str, CommandFunction] = {"flux": _flux}


def unreachable(command: str) -> CommandResult:
    """Return the output of a command while the broker is down."""
    why = "Unable to connect to Flux: broker socket /run/flux/local was not found"
    return CommandResult(returncode=1, stderr=f"{command}: ERROR: {why}\n")
