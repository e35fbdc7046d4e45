"""LSF 10.1, from its documentation and from what has been published of its answers."""

from __future__ import annotations

from .commands import commands_of, unreachable
from .flavour import LSF

__all__ = ["commands", "unreachable"]

#: The commands by name.
commands = commands_of(LSF)
