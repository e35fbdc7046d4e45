"""Queries and controls Slurm jobs.

The modules query squeue, sacct and scontrol about jobs and partitions, and cancel, hold and release jobs.

They parse the output into one Observation per job that it mentions. Incomplete output is an error and yields
no Observation.
"""

from .control import cancel, hold, parse_cancel, parse_hold, parse_release, release
from .partitions import parse_queues, queues, version
from .sacct import parse_finished, query_finished
from .squeue import find, parse_find, parse_status, query
