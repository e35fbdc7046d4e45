"""Maps Slurm's job states to the states and reasons of jpsi."""

from __future__ import annotations

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
