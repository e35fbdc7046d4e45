"""What Flux's words for the state of a job mean."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import JobState, Reason

# flux-jobs(1), JOB STATUS: the field `status`, which is the state until a job is INACTIVE, and its result
# from then on.
STATES: Mapping[str, JobState] = {
    "DEPEND": JobState.QUEUED,
    "PRIORITY": JobState.QUEUED,
    "SCHED": JobState.QUEUED,
    "RUN": JobState.ACTIVE,
    "CLEANUP": JobState.ACTIVE,
    "COMPLETED": JobState.COMPLETED,
    "FAILED": JobState.FAILED,
    "CANCELED": JobState.CANCELED,
    "TIMEOUT": JobState.FAILED,
}

# RFC 21, exceptions: the types by which Flux itself ends a job. Other types are its users' to choose.
EXCEPTIONS: Mapping[str, Reason] = {
    "alloc": Reason.LAUNCH,
    "cancel": Reason.CANCELLED,
    "dependency": Reason.DEPENDENCY,
    "exec": Reason.LAUNCH,
    "timeout": Reason.TIMEOUT,
}
#: How the note of an exception `exec` begins if a node is gone.
NODE_FAILURE = "node failure"
