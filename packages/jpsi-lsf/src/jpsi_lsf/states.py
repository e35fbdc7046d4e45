"""Maps LSF's job states and termination reasons to the states and reasons of jpsi.

`queue.observations` uses it for each job that LSF reports.
"""

from __future__ import annotations

from jpsi.plugin import JobState, Meaning, Reason

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE
_COMPLETED, _FAILED, _CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED

# LSF 10.1 Command Reference, bjobs, Output: STAT, in its order, and PROV
STATES = {
    "PEND": Meaning(_QUEUED),
    "PROV": Meaning(_QUEUED, None, "the job's node is being woken up"),
    "PSUSP": Meaning(_QUEUED, None, "the job is held"),
    "RUN": Meaning(_ACTIVE),
    "USUSP": Meaning(_ACTIVE, None, "the job was suspended"),
    "SSUSP": Meaning(_ACTIVE, None, "LSF has suspended the job"),
    "DONE": Meaning(_COMPLETED),
    "EXIT": Meaning(_FAILED),
    "UNKWN": Meaning(_ACTIVE, None, "LSF cannot reach the job's node"),
    "WAIT": Meaning(_QUEUED, None, "the job waits for others of its chunk"),
    # It becomes EXIT once LSF has made sure that the job is dead.
    "ZOMBI": Meaning(_ACTIVE, None, "the job is to be killed once LSF can reach its node again"),
}

# "Termination reasons displayed by bacct, bhist, and bjobs" of the LSF 10.1 documentation, in its order; the
# last eight are in lsbatch.h only. Any other code means only that LSF ended the job.
TERMINATIONS = {
    "TERM_ADMIN": Meaning(_CANCELED, Reason.CANCELLED),
    "TERM_BUCKET_KILL": Meaning(_CANCELED, Reason.CANCELLED),
    "TERM_CPULIMIT": Meaning(_FAILED, Reason.TIMEOUT),
    "TERM_CWD_NOTEXIST": Meaning(_FAILED, Reason.LAUNCH),
    "TERM_DEADLINE": Meaning(_FAILED, Reason.DEADLINE),
    "TERM_EXTERNAL_SIGNAL": Meaning(_FAILED, Reason.SIGNAL),
    "TERM_FORCE_ADMIN": Meaning(_CANCELED, Reason.CANCELLED),
    "TERM_FORCE_OWNER": Meaning(_CANCELED, Reason.CANCELLED),
    "TERM_MEMLIMIT": Meaning(_FAILED, Reason.OUT_OF_MEMORY),
    "TERM_ORPHAN_SYSTEM": Meaning(_CANCELED, Reason.DEPENDENCY),
    "TERM_OWNER": Meaning(_CANCELED, Reason.CANCELLED),
    "TERM_PREEMPT": Meaning(_FAILED, Reason.PREEMPTED),
    "TERM_REMOVE_HUNG_JOB": Meaning(_FAILED, Reason.NODE_FAIL),
    "TERM_REQUEUE_ADMIN": Meaning(_QUEUED, Reason.REQUEUED),
    "TERM_REQUEUE_OWNER": Meaning(_QUEUED, Reason.REQUEUED),
    "TERM_REQUEUE_RC": Meaning(_QUEUED, Reason.REQUEUED),
    "TERM_RUNLIMIT": Meaning(_FAILED, Reason.TIMEOUT),
    "TERM_SWAP": Meaning(_FAILED, Reason.OUT_OF_MEMORY),
    "TERM_WINDOW": Meaning(_FAILED, Reason.DEADLINE),
    "TERM_ZOMBIE": Meaning(_FAILED, Reason.NODE_FAIL),
}
