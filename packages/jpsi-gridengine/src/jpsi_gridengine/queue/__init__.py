"""The queue.

Reads qstat, qacct and the list of cluster queues, and cancels, holds and releases jobs.

What a command prints becomes an Observation of each job that it mentions, or nothing: an answer that is not
whole is none.
"""

from .cluster_queues import parse_queues, queues, version
from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .qacct import parse_finished, query_finished
from .qstat import find, parse_find, parse_status, query

__all__ = [
    "cancel",
    "find",
    "hold",
    "parse_cancel",
    "parse_find",
    "parse_finished",
    "parse_hold",
    "parse_queues",
    "parse_release",
    "parse_status",
    "query",
    "query_finished",
    "queues",
    "release",
    "version",
]
