"""Output for people, and quantities as they type them: states, output of jobs, colours, sizes and times.

A command imports this package only when it runs, since it imports the library.
"""

from __future__ import annotations

from . import quantities, terminal
from .display import COLOURS, Display, Quiet, choose_display
from .follower import Follower
from .outcome import describe_end, status_json
from .progress import summarize_states
from .quantities import format_size
from .terminal import Paint, plain
