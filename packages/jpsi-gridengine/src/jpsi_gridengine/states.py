"""Maps Grid Engine's job states, which are combinations of letters, to those of jpsi.

`queue.qstat` uses it for each listed job.
"""

from __future__ import annotations

from jpsi.plugin import JobState, Meaning, Reason

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE

# qstat(1) of 8.1.9, OUTPUT FORMATS: the status of the job. `z`, for ended jobs, says nothing about how they
# ended, and jpsi does not query it.
_LETTERS = frozenset("dEhqrRsStTw")

# The first letter found decides: a job in an error state is also waiting, a deleted one also running.
# sge_status(5) of 8.1.9 lists the combinations.
_MEANINGS = (
    (
        "E",
        Meaning(
            _QUEUED,
            Reason.LAUNCH,
            "Grid Engine could not run the job and keeps it in an error state; `qstat -j` shows the reason, "
            "`qmod -cj` has it try again",
        ),
    ),
    ("s", Meaning(_ACTIVE, None, "the job is suspended")),
    ("S", Meaning(_ACTIVE, None, "the job is suspended with its queue")),
    ("T", Meaning(_ACTIVE, None, "the job is suspended, since its node is too busy")),
    ("r", Meaning(_ACTIVE)),
    ("t", Meaning(_QUEUED, None, "the job is being sent to its node")),
    ("h", Meaning(_QUEUED, None, "the job is held, or waits for other jobs")),
    ("R", Meaning(_QUEUED, Reason.REQUEUED, "the job is requeued")),
    ("q", Meaning(_QUEUED)),
    ("w", Meaning(_QUEUED)),
)


def state_meaning(letters: str) -> Meaning | None:
    """Return the meaning of a state; None if one of its letters is unknown.

    >>> state_meaning("dr").state, state_meaning("Eqw").reason, state_meaning("XYZ")
    (<JobState.ACTIVE: 'ACTIVE'>, <Reason.LAUNCH: 'launch'>, None)
    """
    if not _LETTERS.issuperset(letters):
        return None
    known = next((state_meaning for letter, state_meaning in _MEANINGS if letter in letters), None)
    if known is not None and "d" in letters:
        return known._replace(message="the job is being deleted")
    return known
