"""The processes of a pilot on a node, whatever its engine is.

The `node_supervisor` starts the worker of the engine and ends its `orphans`. The worker runs jobs (`runs`),
each a session with devices of its own, and records in the `node_log` which runs have begun and ended.
"""

from .command_line import python_command
from .devices import NoDeviceError
from .node_log import NodeLog, NodeStory, carrier_of, log_of, story
from .orphans import end_orphans, is_here
from .runs import Runs, environment_of
from .stop_requests import request_stop, requested_stops

__all__ = [
    "NoDeviceError",
    "NodeLog",
    "NodeStory",
    "Runs",
    "carrier_of",
    "end_orphans",
    "environment_of",
    "is_here",
    "log_of",
    "python_command",
    "request_stop",
    "requested_stops",
    "story",
]
