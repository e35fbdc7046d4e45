"""Queries and controls Grid Engine jobs.

The modules query qstat, qacct and the cluster queues, and cancel, hold and release jobs.

They parse the output into one Observation per job that it mentions. Incomplete output is an error and yields
no Observation.
"""

from .cluster_queues import parse_queues, queues, version
from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .qacct import parse_finished, query_finished
from .qstat import find, parse_find, parse_status, query
