"""Output for people, and quantities as they type them: states, output of jobs, colours, sizes and times.

A command imports this package only when it runs, since it imports the library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import quantities, terminal
    from .display import COLOURS, Display, Quiet, choose_display
    from .follower import Follower
    from .outcome import describe_end, failed_to_open, status_json
    from .progress import summarize_states
    from .quantities import format_about, format_size
    from .table import align
    from .terminal import Paint, plain
    from .wait_reasons import CHECK_SECONDS, HELD_ADVICE, WaitReasons, held_advice, with_advice
else:
    # Each command uses a part of it.
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".": "quantities terminal",
            ".display": "COLOURS Display Quiet choose_display",
            ".follower": "Follower",
            ".outcome": "describe_end failed_to_open status_json",
            ".progress": "summarize_states",
            ".quantities": "format_about format_size",
            ".table": "align",
            ".terminal": "Paint plain",
            ".wait_reasons": "CHECK_SECONDS HELD_ADVICE WaitReasons held_advice with_advice",
        },
    )
