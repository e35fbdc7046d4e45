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

# RFC 21, exceptions: the types by which Flux itself ends a job. Other types are its users' to choose; what
# `exec` means is told by its note.
EXCEPTIONS: Mapping[str, Reason] = {
    "alloc": Reason.LAUNCH,
    "cancel": Reason.CANCELLED,
    "dependency": Reason.DEPENDENCY,
    "prolog": Reason.LAUNCH,
    "timeout": Reason.TIMEOUT,
}
# What stands in the note of an exception `exec`, of flux-core 0.58 and 0.88. Others tell what the job did, as
# that it called PMI_Abort, or that a process of it failed.
EXEC_NOTES: Mapping[str, Reason] = {
    "node failure": Reason.NODE_FAIL,
    "lost contact with job shell": Reason.NODE_FAIL,
    "start failed": Reason.LAUNCH,
    "shell_init": Reason.LAUNCH,
    "job shell exec error": Reason.LAUNCH,
    "error opening input file": Reason.LAUNCH,
}
