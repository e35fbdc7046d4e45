"""Explains Slurm's reason codes for pending jobs in sentences for users."""

from __future__ import annotations

import re

from jpsi.plugin import Reason

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
