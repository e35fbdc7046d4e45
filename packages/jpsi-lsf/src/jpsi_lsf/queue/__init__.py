"""The queue.

Reads bjobs, bhist and bqueues, and cancels, holds and releases jobs.

What a command prints becomes an Observation of each job that it mentions, or nothing: an answer that is not
whole is none. LSF 10.1 prints jobs as JSON, and every version in paragraphs of text.
"""

from .bhist import parse_finished, query_finished
from .bjobs import find, parse_find, parse_status, query
from .bqueues import parse_queues, queues, version
from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .json_listing import FIELDS

__all__ = [
    "FIELDS",
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
