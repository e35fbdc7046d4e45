"""`flux start` and the commands about an instance; the fake batch system is the only instance.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import NO_ANSWER, CommandError, CommandFunction, FakeScheduler, Invocation, refuse_if

_ATTRIBUTES = {"rank": "0", "size": "1", "version": "0.88.0"}
_UPTIME = " 09:30:51 run 29s,  owner tester,  depth 0,  size 1\n"


def _start(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Run until killed; the fake runs no initial program."""
    return NO_ANSWER


def _getattr(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print an attribute of the broker."""
    name = invocation.arguments[-1]
    refuse_if({f"flux-getattr: {name}: No such file or directory": name not in _ATTRIBUTES}, 1)
    return f"{_ATTRIBUTES[name]}\n"


def _queue(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the only queue, which has no name, in the only format that jpsi uses."""
    if invocation.arguments[1:4] != ("list", "-n", "-o"):
        raise CommandError(2, "usage: flux-queue [-h] {list}\n")
    return "|enabled|started|inf|inf|0-inf\n"


#: The subcommands of `flux` by name.
COMMANDS: Mapping[str, CommandFunction] = {
    "getattr": _getattr,
    "queue": _queue,
    "start": _start,
    "uptime": lambda _scheduler, _invocation: _UPTIME,
}
