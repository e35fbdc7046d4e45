"""Maps Slurm's job states to the states and reasons of jpsi, and explains its reason codes to users.

`queue.observations` uses it for each job that squeue or sacct lists.
"""

from __future__ import annotations

import re

from jpsi.plugin import JobState, Meaning, Reason

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE
_COMPLETED, _FAILED, _CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED

# https://slurm.schedmd.com/job_state_codes.html of Slurm 25.11, in its order; squeue(1) of 22.05 has the
# same words but for EXPEDITING, LAUNCH_FAILED, POWER_UP_NODE, RECONFIG_FAIL and UPDATE_DB.
STATES = {
    # Job states
    "BOOT_FAIL": Meaning(_FAILED, Reason.NODE_FAIL, "a node could not be booted for the job"),
    "CANCELLED": Meaning(_CANCELED, Reason.CANCELLED, "the job was cancelled"),
    "COMPLETED": Meaning(_COMPLETED),
    "DEADLINE": Meaning(_FAILED, Reason.DEADLINE, "the job could not end before its deadline"),
    "FAILED": Meaning(_FAILED),
    "NODE_FAIL": Meaning(_FAILED, Reason.NODE_FAIL, "a node of the job failed"),
    "OUT_OF_MEMORY": Meaning(_FAILED, Reason.OUT_OF_MEMORY, "the job used more memory than it may"),
    "PENDING": Meaning(_QUEUED),
    "PREEMPTED": Meaning(_FAILED, Reason.PREEMPTED, "the job was preempted by another job"),
    "RUNNING": Meaning(_ACTIVE),
    "SUSPENDED": Meaning(_ACTIVE, None, "the job is suspended"),
    "TIMEOUT": Meaning(_FAILED, Reason.TIMEOUT, "the job used up its duration and was ended"),
    # Job flags; the commands show one of them instead of the state
    "COMPLETING": Meaning(_ACTIVE, None, "the job's processes and nodes are being cleaned up"),
    "CONFIGURING": Meaning(_QUEUED, None, "the job's nodes are being made ready"),
    "EXPEDITING": Meaning(_QUEUED, None, "the job is next to be scheduled"),
    "LAUNCH_FAILED": Meaning(_QUEUED, Reason.LAUNCH, "the job could not be started on its nodes"),
    "POWER_UP_NODE": Meaning(_QUEUED, None, "the job's nodes are being powered up"),
    "RECONFIG_FAIL": Meaning(_QUEUED, Reason.NODE_FAIL, "the job's nodes could not be made ready"),
    "REQUEUED": Meaning(_QUEUED, Reason.REQUEUED, "the job is requeued"),
    "REQUEUE_FED": Meaning(_QUEUED, Reason.REQUEUED, "the federation of clusters requeues the job"),
    "REQUEUE_HOLD": Meaning(_QUEUED, Reason.REQUEUED, "the job was requeued, and is held"),
    "RESIZING": Meaning(_ACTIVE, None, "the job's allocation is changing its size"),
    "RESV_DEL_HOLD": Meaning(_QUEUED, None, "the job is held, since its reservation was deleted"),
    # The sibling job on another cluster of the federation has started or ended. Slurm does not say which;
    # QUEUED contradicts neither.
    "REVOKED": Meaning(_QUEUED, None, "another cluster of the federation has taken the job"),
    "SIGNALING": Meaning(_ACTIVE, None, "the job is being sent a signal"),
    "SPECIAL_EXIT": Meaning(_QUEUED, Reason.REQUEUED, "the site requeued the job, and it is held"),
    "STAGE_OUT": Meaning(_ACTIVE, None, "the job's files are being staged out"),
    "STOPPED": Meaning(_ACTIVE, None, "the job is stopped and keeps its nodes"),
    "UPDATE_DB": Meaning(_ACTIVE, None, "the job is being written to the accounting"),
}

# https://slurm.schedmd.com/job_reason_codes.html of Slurm 25.11, in its order: the codes that need
# explaining. The last two are no codes; slurmctld prints them instead of a code (squeue(1): %r).
_SENTENCES = {
    "AccountNotAllowed": "the account may not be used in this partition",
    "AccountingPolicy": "a limit of the account or quality of service is reached",
    "BadConstraints": "no node can ever satisfy the job's constraints",
    "BeginTime": "the job waits for its earliest start time",
    "BurstBufferResources": "the burst buffer has no free space",
    "BurstBufferStageIn": "files are being staged into the burst buffer",
    "Cleaning": "the job's previous run is still being cleaned up",
    "Constraints": "no node satisfies the job's constraints now",
    "DeadLine": "the job cannot meet its deadline",
    "Dependency": "the job waits for a job that it depends on",
    "DependencyNeverSatisfied": "a job that this one depends on has ended so that this one never starts",
    "InvalidAccount": "the account is invalid",
    "InvalidQOS": "the quality of service is invalid",
    "JobArrayTaskLimit": "as many elements of the array run as may at a time",
    "JobHeldAdmin": "the job is held by an administrator",
    "JobHeldUser": "the job is held",
    "JobHoldMaxRequeue": "the job was requeued so often that it is held",
    "JobLaunchFailure": "the job could not be started",
    "Licenses": "a licence is not free",
    "MaxMemPerLimit": "the job requests more memory than the limit per CPU or node",
    "NodeDown": "a node that the job needs is down",
    "PartitionConfig": "the job requests more than its partition allows",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition starts no jobs now",
    "PartitionNodeLimit": "the job requests more nodes than its partition allows or has up",
    "PartitionTimeLimit": "the job requests more time than its partition allows",
    "Priority": "jobs of higher priority are ahead",
    "Prolog": "the prolog is running",
    "ReqNodeNotAvail": "a node that the job needs is not available",
    "Reservation": "the job's reservation has not begun",
    "ReservationDeleted": "the job's reservation was deleted",
    "Resources": "the nodes are in use",
    "SystemFailure": "Slurm, the file system or the network has failed",
    "job requeued in held state": "the job was requeued, and is held",
    "launch failed requeued held": "the job could not be started, was requeued, and is held",
}
# The same list: codes for limits, by the beginning of their names
_LIMITS = (
    (re.compile(r"Assoc"), "a limit of the account is reached"),
    (re.compile(r"QOS|Max\w+PerAccount\Z"), "a limit of the quality of service is reached"),
    (re.compile(r"BurstBuffer"), "the burst buffer is not ready"),
)

_REASONS = {
    "DependencyNeverSatisfied": Reason.DEPENDENCY,
    "DeadLine": Reason.DEADLINE,
    "launch failed requeued held": Reason.LAUNCH,
}
#: Codes without information: the scheduler has not considered the job yet.
NO_REASONS = frozenset({"", "None", "(null)"})


def pending_reason(code: str) -> Reason | None:
    """Return the Reason for a code that means that the pending job will not run; None for other codes."""
    return _REASONS.get(code)


def pending_message(code: str) -> str | None:
    """Return a sentence that explains a reason code, with the code; None for a code without information."""
    if code in NO_REASONS:
        return None
    # ReqNodeNotAvail, UnavailableNodes:node[01-02]
    sentence = _SENTENCES.get(code) or _SENTENCES.get(code.partition(",")[0])
    if sentence is None:
        sentence = next((text for pattern, text in _LIMITS if pattern.match(code)), None)
    return code if sentence is None or sentence == code else f"{sentence} ({code})"
