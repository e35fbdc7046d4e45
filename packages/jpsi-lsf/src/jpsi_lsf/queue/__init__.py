"""Queries and controls LSF jobs.

The modules query bjobs, bhist and bqueues, and cancel, hold and release jobs.

They parse the output into one Observation per job that it mentions. Incomplete output is an error and yields
no Observation. LSF 10.1 can print jobs as JSON, and every version prints them as paragraphs of text.
"""

from .bjobs import find, parse_find, parse_status, query
from .bqueues import parse_queues, queues, version
from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .json_listing import FIELDS
from .long_listing import parse_finished, query_finished
