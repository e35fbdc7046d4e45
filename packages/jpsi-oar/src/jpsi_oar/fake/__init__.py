"""The fake of OAR: its commands over a fake batch system, after recordings of 2.5.9.

Tests and `jpsi fake` run jobs on the fake, without a real OAR.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import NO_ANSWER, CommandFunction

from .control import oardel, oarhold, oarresume
from .listing import oarstat
from .submit import oarsub

#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    "oarsub": oarsub,
    "oarstat": oarstat,
    "oardel": oardel,
    "oarhold": oarhold,
    "oarresume": oarresume,
}


def unreachable(command: str) -> CommandResult:
    """Return a command's output while the database is down, for which all but oarstat wait."""
    if command == "oarstat":
        return CommandResult(returncode=25, stderr="DB connection error, exiting.\n")
    return NO_ANSWER
