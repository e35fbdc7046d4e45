"""Running a plan.

The driver submits what can start, follows it to its end, and journals the outcome.

Around the driver: dependencies of entries, the specs of their jobs, submissions with a backoff, staged files,
probes of services, live output, checks before the first submission, and exit codes.
"""

from __future__ import annotations

from .driver import Driver, show_output
from .executor import Executor, JobDetails
from .job_specs import check_jobs, find_misfits, render_names, submitted_spec
from .next_step import combined_state
from .outcome import (
    EXIT_CANCELLED,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_JPSI,
    EXIT_TIMEOUT,
    EXIT_USAGE,
    cleans_up,
    exit_code_of,
)
