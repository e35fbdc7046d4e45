"""The fake of volclava 2.2, written after recordings; volclava is compatible with old versions of LSF.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from . import commands_of, unreachable
from .flavour import VOLCLAVA

__all__ = ["commands", "unreachable"]

#: The commands by name.
commands = commands_of(VOLCLAVA)
