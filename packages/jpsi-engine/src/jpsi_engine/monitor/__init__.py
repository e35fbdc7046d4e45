"""Follows jobs.

Takes in markers and answers of the batch system, and publishes what follows from them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.monitor import poll_loop, publisher
    from jpsi_engine.monitor.event_stream import (
        Hearing,
        hearing,
    )
    from jpsi_engine.monitor.job_monitor import (
        Tracking,
    )
    from jpsi_engine.monitor.liveness import (
        HeardTime,
    )
    from jpsi_engine.monitor.poll_loop import (
        Rounds,
    )
    from jpsi_engine.monitor.publisher import (
        Judging,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "event_stream": "Hearing hearing",
            "job_monitor": "Tracking",
            "liveness": "HeardTime",
            "poll_loop": "Rounds",
            "publisher": "Judging",
            "": "poll_loop publisher",
        },
    )

__all__ = [
    "HeardTime",
    "Hearing",
    "Judging",
    "Rounds",
    "Tracking",
    "hearing",
    "poll_loop",
    "publisher",
]
