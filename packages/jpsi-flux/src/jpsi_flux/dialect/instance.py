"""`flux start`, and what tells of an instance: a fake batch system is the only one there is."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.fakes import NO_ANSWER, CommandFunction, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

_ATTRIBUTES = {"rank": "0", "size": "1", "version": "0.88.0"}
_UPTIME = " 09:30:51 run 29s,  owner tester,  depth 0,  size 1\n"


def _start(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Be there until it is ended; it runs no program of its own."""
    return NO_ANSWER


def _getattr(_scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Tell an attribute of the broker."""
    name = invocation.arguments[-1]
    if name not in _ATTRIBUTES:
        return CommandResult(returncode=1, stderr=f"flux-getattr: {name}: No such file or directory\n")
    return CommandResult(returncode=0, stdout=f"{_ATTRIBUTES[name]}\n")


def _uptime(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Tell that it is up."""
    return CommandResult(returncode=0, stdout=_UPTIME)


#: The subcommands of `flux` by name.
COMMANDS: Mapping[str, CommandFunction] = {"getattr": _getattr, "start": _start, "uptime": _uptime}
