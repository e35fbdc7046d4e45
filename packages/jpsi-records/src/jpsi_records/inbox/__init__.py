"""The inbox of a job, by which it makes requests without opening the records.

The job of an execution submits requests, reports its progress and learns how its requests have ended, by
files alone. A job imports this room: nothing here, or below, loads the database.
"""

from .inbox import (
    EXECUTION,
    INBOX,
    PROGRESS,
    Asked,
    Inbox,
    check_progress,
    is_in_job,
    read_request,
    refuse_in_job,
)
from .reports import NO_REPORT, Report, read_progress
from .results import ENDED, RequestResult, result_path, write_result

__all__ = [
    "ENDED",
    "EXECUTION",
    "INBOX",
    "NO_REPORT",
    "PROGRESS",
    "Asked",
    "Inbox",
    "Report",
    "RequestResult",
    "check_progress",
    "is_in_job",
    "read_progress",
    "read_request",
    "refuse_in_job",
    "result_path",
    "write_result",
]
