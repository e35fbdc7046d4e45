"""Follows jobs.

Takes in markers and snapshots of the batch system, and publishes the statuses that follow from them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_engine.monitor import poll_loop, publisher
    from jpsi_engine.monitor.event_stream import (
        EventStream,
        make_event_stream,
    )
    from jpsi_engine.monitor.job_monitor import (
        JobMonitor,
    )
    from jpsi_engine.monitor.liveness import (
        Liveness,
    )
    from jpsi_engine.monitor.poll_loop import (
        PollLoop,
    )
    from jpsi_engine.monitor.publisher import (
        Publisher,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "event_stream": "EventStream make_event_stream",
            "job_monitor": "JobMonitor",
            "liveness": "Liveness",
            "poll_loop": "PollLoop",
            "publisher": "Publisher",
            "": "poll_loop publisher",
        },
    )

__all__ = [
    "EventStream",
    "JobMonitor",
    "Liveness",
    "PollLoop",
    "Publisher",
    "make_event_stream",
    "poll_loop",
    "publisher",
]
