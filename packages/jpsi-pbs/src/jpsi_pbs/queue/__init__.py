"""Queries and controls PBS and Torque jobs; parses qstat's JSON and XML.

The modules parse qstat's output into one Observation per job that it mentions. Incomplete output is an error
and yields no Observation. PBS and Torque differ in the form of the listing and in the exit codes of jobs.
"""

from .control import cancel, change_by_ranges, hold, parse_cancel, parse_hold, release
from .exit_status import End, derive_openpbs_end, derive_torque_end
from .json_listing import parse_json_jobs
from .listing import ListedJob, own_jobs, unwrap_listing, wrap_listing
from .observations import observe_jobs
from .qstat_errors import is_valid_answer, parse_undecided_jobs, parse_unknown_jobs
from .queue_list import parse_queue_listing, queues, version
from .xml_listing import parse_xml_jobs
