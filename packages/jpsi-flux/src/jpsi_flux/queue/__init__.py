"""The queue.

Asks Flux about jobs and queues, follows its events, and cancels, holds and releases jobs.

What a command prints becomes an Observation of each job that it mentions, or nothing: an answer that is not
whole is none.
"""

from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .events import parse_event, watch
from .jobs import find, parse_find, parse_status, query
from .queue_list import parse_queues, queues, version

__all__ = [
    "cancel",
    "find",
    "hold",
    "parse_cancel",
    "parse_event",
    "parse_find",
    "parse_hold",
    "parse_queues",
    "parse_release",
    "parse_status",
    "query",
    "queues",
    "release",
    "version",
    "watch",
]
