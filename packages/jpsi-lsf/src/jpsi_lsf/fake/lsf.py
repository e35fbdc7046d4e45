"""The fake of LSF 10.1, after its documentation and published output.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from . import commands_of, unreachable
from .flavour import LSF

__all__ = ["commands", "unreachable"]

#: The commands by name.
commands = commands_of(LSF)
