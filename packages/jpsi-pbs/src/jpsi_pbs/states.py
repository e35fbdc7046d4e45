"""Maps the job states of PBS and Torque to those of jpsi.

`queue.observations` uses it for each listed job.
"""

from __future__ import annotations

from jpsi.plugin import JobState, Meaning

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE

# qstat(1B) of OpenPBS 23.06.06, "Job States", in its order; Torque 6.1.3 has no B, F, M, U, X, and C for
# ended jobs. Final states are not in this table.
STATES = {
    "B": Meaning(_ACTIVE),
    "E": Meaning(_ACTIVE, None, "the job has run, and its files are being brought to their places"),
    "H": Meaning(_QUEUED, None, "the job is held"),
    "M": Meaning(_QUEUED, None, "the job was moved to another server"),
    "Q": Meaning(_QUEUED),
    "R": Meaning(_ACTIVE),
    "S": Meaning(_ACTIVE, None, "the job is suspended"),
    "T": Meaning(_QUEUED, None, "the job is being moved"),
    "U": Meaning(_ACTIVE, None, "the job is suspended, as its node is in use"),
    "W": Meaning(_QUEUED, None, "the job waits for its earliest start time or for its files"),
}
#: The final states: finished (F), finished array element (X); completed (C, Torque).
ENDED = frozenset({"F", "X", "C"})
