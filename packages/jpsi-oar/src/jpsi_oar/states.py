"""Maps the states of OAR, and the events of a job that OAR ended, to those of jpsi.

`oarstat` uses it for each listed job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jpsi.plugin import JobState, Meaning, Reason

_QUEUED, _ACTIVE, _FAILED = JobState.QUEUED, JobState.ACTIVE, JobState.FAILED

# oarstat(1) of 2.5.9: the states of jobs that have not ended; `toError` says only that a job will end.
_STATES: Mapping[str, Meaning] = {
    "Waiting": Meaning(_QUEUED),
    "Hold": Meaning(_QUEUED, None, "the job is held"),
    "toLaunch": Meaning(_QUEUED),
    "toAckReservation": Meaning(_QUEUED),
    "Launching": Meaning(_QUEUED, None, "the job is being sent to its node"),
    "Running": Meaning(_ACTIVE),
    "Suspended": Meaning(_ACTIVE, None, "the job is suspended"),
    "Resuming": Meaning(_ACTIVE),
    "Finishing": Meaning(_ACTIVE),
}
#: The states of ended jobs: of one whose script ended, and of one that OAR ended or could not run.
ENDED = _TERMINATED, _ERROR = ("Terminated", "Error")

_REQUEST = "FRAG_JOB_REQUEST"
# The users by which OAR itself ends jobs.
_SERVERS = ("root", "oar")
_NODE_FAIL, _LAUNCH = Meaning(_FAILED, Reason.NODE_FAIL), Meaning(_FAILED, Reason.LAUNCH)
# The documentation of OAR 2.5, "Database scheme", event_logs. The first that a job has decides, unless its
# owner has ended it: OAR ends a job for its walltime, or for another job, by the same request as a user.
_EVENTS: Mapping[str, Meaning] = {
    "BESTEFFORT_KILL": Meaning(_FAILED, Reason.PREEMPTED),
    "WALLTIME": Meaning(_FAILED, Reason.TIMEOUT),
    **dict.fromkeys(("EXTERMINATE_JOB", "EXIT_VALUE_OAREXEC", "PING_CHECKER_NODE_SUSPECTED"), _NODE_FAIL),
    _REQUEST: Meaning(JobState.CANCELED, Reason.CANCELLED),
    **dict.fromkeys(("OUTPUT_FILES", "WORKING_DIRECTORY", "USER_SHELL", "PROLOGUE_ERROR"), _LAUNCH),
    **dict.fromkeys(("CPUSET_ERROR", "CANNOT_WRITE_NODE_FILE", "CANNOT_WRITE_PID_FILE"), _LAUNCH),
    **dict.fromkeys(("CANNOT_CREATE_TMP_DIRECTORY", "LAUNCHING_OAREXEC_TIMEOUT"), _LAUNCH),
    **dict.fromkeys(("BAD_HASHTABLE_DUMP", "SSH_TRANSFER_TIMEOUT", "RESERVATION_NO_NODE"), _LAUNCH),
}


def explain_state(
    word: str, status: int | None, events: Iterable[Mapping[str, Any]], owner: str
) -> Meaning | tuple[None, None, None]:
    """Return the meaning of a state, with the wait status of the job's script and the events of the job."""
    if word == _ERROR:
        return explain_error(events, owner)
    if word != _TERMINATED:
        return _STATES.get(word, (None, None, None))
    message = "OAR reports no exit code" if status is None else None
    return Meaning(JobState.COMPLETED if status == 0 else _FAILED, message=message)


def explain_error(events: Iterable[Mapping[str, Any]], owner: str) -> Meaning:
    """Return why OAR ended a job, by its events.

    >>> explain_error([{"type": "FRAG_JOB_REQUEST", "description": "User me requested it"}], "me")
    Meaning(state=<JobState.CANCELED: 'CANCELED'>, reason=<Reason.CANCELLED: 'cancelled'>, \
message='User me requested it')
    """
    descriptions = {str(event["type"]): str(event["description"]) for event in events}
    # OAR records who requested the end of a job first
    request = descriptions.get(_REQUEST, "")
    is_owners = owner not in _SERVERS and request.startswith(f"User {owner} ")
    kind = _REQUEST if is_owners else next((it for it in _EVENTS if it in descriptions), "")
    message = descriptions.get(kind)
    if kind == _REQUEST and not is_owners:
        # NodeChangeState ends the jobs of dead nodes by the same request
        message = f"{message}: an administrator did, or OAR did as a node of the job is dead or absent"
    return _EVENTS.get(kind, Meaning(_FAILED))._replace(message=message)
