"""Queries and controls PBS and Torque jobs; parses qstat's JSON and XML.

The modules parse qstat's output into one Observation per job that it mentions. Incomplete output is an error
and yields no Observation. PBS and Torque differ in the form of the listing and in the exit codes of jobs.
"""

from .control import cancel, hold, parse_cancel, parse_hold, release, request_by_ranges
from .exit_status import End, openpbs_end, torque_end
from .json_listing import parse_json_jobs
from .listing import Listed
from .observations import observe_jobs
from .qstat_errors import denied_jobs, is_answer, undecided_jobs
from .queue_list import queues, read_queues, version
from .user_jobs import frame_listing, own_jobs, unframe_listing
from .xml_listing import parse_xml_jobs

__all__ = [
    "End",
    "Listed",
    "cancel",
    "denied_jobs",
    "frame_listing",
    "hold",
    "is_answer",
    "observe_jobs",
    "openpbs_end",
    "own_jobs",
    "parse_cancel",
    "parse_hold",
    "parse_json_jobs",
    "parse_xml_jobs",
    "queues",
    "read_queues",
    "release",
    "request_by_ranges",
    "torque_end",
    "undecided_jobs",
    "unframe_listing",
    "version",
]
