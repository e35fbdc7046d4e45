"""The fake of Grid Engine: its commands over a fake batch system, after recordings of 8.1.9.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction

from .control import COMMANDS
from .listing import qacct, qconf, qstat
from .submit import qsub

#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    "qsub": qsub,
    "qstat": qstat,
    "qacct": qacct,
    "qconf": qconf,
    **COMMANDS,
}

_COMMLIB = "error: commlib error: got select error (Connection refused)\n"
_NO_CONTACT = 'unable to send message to qmaster using port 6444 on host "sge01": got send error\n'


def unreachable(command: str) -> CommandResult:
    """Return a command's output while the master, and with it the file that qacct reads, is down."""
    if command == "qsub":
        return CommandResult(returncode=1, stderr=f"{_COMMLIB}Unable to run job: {_NO_CONTACT}Exiting.\n")
    if command in {"qstat", "qconf"}:
        return CommandResult(returncode=1, stderr=f"{_COMMLIB}error: {_NO_CONTACT}")
    if command == "qacct":
        return CommandResult(
            returncode=1, stderr="error: error while opening accounting file: Stale file handle\n"
        )
    return CommandResult(returncode=1, stdout=_NO_CONTACT, stderr=_COMMLIB)
