"""Classifies failures of qsub: the job is refused, can be retried, or may have been accepted nevertheless.

The engine decides by it whether to submit the job again: a wrong answer would run a job twice that the server
already has.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import CommandResult, Failure, FailureKind, hookimpl
from jpsi.plugin.kit import SubmitErrors

_TRANSIENT, _PERMANENT = FailureKind.TRANSIENT, FailureKind.PERMANENT
_INVALID, _AMBIGUOUS = FailureKind.INVALID_JOB, FailureKind.AMBIGUOUS

# Messages of qsub; the first that matches decides. The texts are from OpenPBS 23.06.06 (pbs_messages.c,
# qsub.c) and Torque 6.1.3. A message that is not listed is AMBIGUOUS.
_TEXTS = (
    # qsub sent nothing.
    ("Unknown Host", _PERMANENT),
    ("Cannot resolve", _PERMANENT),
    ("cannot connect to server", _TRANSIENT),
    ("pbs_iff: ", _TRANSIENT),
    # The server refused the job for now; a retry may succeed.
    ("Request not allowed: Server shutting down", _TRANSIENT),
    ("No free connections", _TRANSIENT),
    ("Resource temporarily unavailable", _TRANSIENT),
    ("Queue is not enabled", _TRANSIENT),
    ("Maximum number of jobs already in queue", _TRANSIENT),
    ("would exceed", _TRANSIENT),
    # The server refuses every job of this user or this machine.
    ("Bad UID for job execution", _PERMANENT),
    ("Access from host not allowed", _PERMANENT),
    ("No default queue specified", _PERMANENT),
    # The server, or qsub itself, refuses this job.
    ("Access to queue is denied", _INVALID),
    ("Array job exceeds", _INVALID),
    ("Bad GID for job execution", _INVALID),
    ("Cannot be used with select", _INVALID),
    ('Cannot have "place" without "select"', _INVALID),
    ("Command syntax invalid", _INVALID),
    ("Illegal attribute or resource value", _INVALID),
    ("Invalid Job Dependency", _INVALID),
    ("Job exceeds queue resource limits", _INVALID),
    ("Job name is too long", _INVALID),
    ("Job rejected by all possible destinations", _INVALID),
    ("Job violates queue and/or server resource limits", _INVALID),
    ("Resource invalid in", _INVALID),
    ("Unauthorized Request", _INVALID),
    ("Unknown queue", _INVALID),
    ("Unknown resource", _INVALID),
    ("cannot be used with", _INVALID),
    ("cannot send environment with the job", _INVALID),
    ("directive error", _INVALID),
    ("duplicated resource", _INVALID),
    ("illegal -", _INVALID),
    ("illegally formed destination", _INVALID),
    ("invalid -v syntax", _INVALID),
    ("invalid option", _INVALID),
    ("script contains cr, lf", _INVALID),
    ("Error (15002) submitting job", _INVALID),
    ("qsub: unmatched", _INVALID),
)
# What only the qsub of Grid Engine prints.
_OF_GRID_ENGINE = ("invalid option argument", "commlib error")
_OTHER_EXECUTOR = "this qsub is that of Grid Engine, whose executor is gridengine"
_ERRORS = SubmitErrors(
    command="qsub",
    texts=_TEXTS,
    # PBSE_HOOKERROR (15136) as an exit code: a hook of the site refuses the job, with any message.
    own_codes={32},
    own_words=("qsub: ",),
    noise="qsub: ",
)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """Return what a failed qsub means for the job and for a retry."""
    failure = _ERRORS.failure(result)
    if any(it in failure.message for it in _OF_GRID_ENGINE):
        return attrs.evolve(failure, message=f"{failure.message}; {_OTHER_EXECUTOR}")
    return failure
