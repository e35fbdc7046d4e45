"""The inbox of a job, through which it makes requests without opening the records.

The job of an execution submits requests, reports its progress and reads the results of its requests, all
through files. Jobs import this package: no module of it, or imported by it, loads the database.
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
