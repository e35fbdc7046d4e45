"""Queries and controls Flux jobs.

The modules query jobs and queues, follow Flux's event stream, and cancel, hold and release jobs.

They parse the output into one Observation per job that it mentions. Incomplete output is an error and yields
no Observation.
"""

from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .events import parse_event, watch
from .jobs import find, parse_find, parse_status, query
from .queue_list import parse_queues, queues, version
