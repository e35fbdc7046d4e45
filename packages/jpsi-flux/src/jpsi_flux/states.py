"""Maps Flux's job states and exceptions to the states and reasons of jpsi.

`queue.observations` uses it for each listed job.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import JobState, Reason

# flux-jobs(1), JOB STATUS: the field `status`, which is the state until the job is INACTIVE, and then its
# result.
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

# RFC 21, exceptions: the types with which Flux itself ends a job. Users may raise other types; the meaning of
# `exec` follows from its note.
EXCEPTIONS: Mapping[str, Reason] = {
    "alloc": Reason.LAUNCH,
    "cancel": Reason.CANCELLED,
    "dependency": Reason.DEPENDENCY,
    "prolog": Reason.LAUNCH,
    "timeout": Reason.TIMEOUT,
}
# Texts in the note of an exception `exec`, from flux-core 0.58 and 0.88. Other notes describe what the job
# did, for example that it called PMI_Abort or that one of its processes failed.
EXEC_NOTES: Mapping[str, Reason] = {
    "node failure": Reason.NODE_FAIL,
    "lost contact with job shell": Reason.NODE_FAIL,
    "start failed": Reason.LAUNCH,
    "shell_init": Reason.LAUNCH,
    "job shell exec error": Reason.LAUNCH,
    "error opening input file": Reason.LAUNCH,
}
