"""The inbox of a job: files by which a running job makes new requests and gets their results.

Its main use: the command of an execution, while it runs as a job, asks for further computations (`jpsi
request submit`, or `Inbox` in Python). The dispatcher takes the requests in, runs them, and writes their
results into the inbox. The job also reports its progress there.

A job does not open the database: it may run on a node that does not reach it. No module of this package, or
imported by it, loads the database.
"""

from .inbox import (
    EXECUTION,
    INBOX,
    NO_REPORT,
    PROGRESS,
    Inbox,
    InboxRequest,
    Report,
    check_progress,
    is_in_job,
    read_progress,
    read_request,
    refuse_in_job,
)
from .results import ENDED, RequestResult, result_path, write_result
