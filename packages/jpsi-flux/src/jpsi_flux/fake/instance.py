"""`flux start`, and what tells of an instance: a fake batch system is the only one there is."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import NO_ANSWER, CommandFunction, FakeScheduler, Invocation

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


def _queue(_scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Show the one queue, which has no name, in the one form that is asked for."""
    if invocation.arguments[1:4] != ("list", "-n", "-o"):
        return CommandResult(returncode=2, stderr="usage: flux-queue [-h] {list}\n")
    return CommandResult(returncode=0, stdout="|enabled|started|inf|inf|0-inf\n")


#: The subcommands of `flux` by name.
COMMANDS: Mapping[str, CommandFunction] = {
    "getattr": _getattr,
    "queue": _queue,
    "start": _start,
    "uptime": _uptime,
}
