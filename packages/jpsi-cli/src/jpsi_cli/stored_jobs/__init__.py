"""The jobs on disk as commands use them: finds those that a word means, recalls and follows them.

A command imports this package only when it runs, since it imports the library.
"""

from __future__ import annotations

from . import job_json
from .array_limit import limit_arrays
from .deferred import await_dependencies, await_submission, start_waiting, submit_deferred
from .dependencies import (
    Dependencies,
    configured_target,
    describe_dependencies,
    read_dependencies,
    sort_dependencies,
)
from .recall import (
    RecalledJobs,
    best_status,
    listed_jobs,
    recall_jobs,
    recover_remote_jobs,
    refresh_statuses,
    report_failures,
)
from .selection import match_jobs, select_job, select_jobs, select_live_jobs, short_ids
from .waiting import wait_for_ends
