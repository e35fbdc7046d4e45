"""How things are written for people, and read from them.

States, output of jobs, colours, sizes and times.

Nothing of it is needed before a command is carried out: whoever imports this waits for the library.
"""

from __future__ import annotations

from . import quantities, terminal
from .display import COLOURS, Display, Quiet, choose_display
from .follower import Follower
from .outcome import describe_end
from .quantities import spelled_size
from .terminal import Paint, is_terminal, plain

__all__ = [
    "COLOURS",
    "Display",
    "Follower",
    "Paint",
    "Quiet",
    "choose_display",
    "describe_end",
    "is_terminal",
    "plain",
    "quantities",
    "spelled_size",
    "terminal",
]
