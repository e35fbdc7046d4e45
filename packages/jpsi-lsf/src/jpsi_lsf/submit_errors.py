"""Classifies failures of bsub: the job is refused, can be retried, or may have been accepted nevertheless.

The engine decides by it whether to submit the job again: a wrong answer would run a job twice that LSF
already has.
"""

from __future__ import annotations

from jpsi.plugin import FailureKind
from jpsi.plugin.kit import SubmitErrors

_AMBIGUOUS, _TRANSIENT = FailureKind.AMBIGUOUS, FailureKind.TRANSIENT
_INVALID, _PERMANENT = FailureKind.INVALID_JOB, FailureKind.PERMANENT

# Messages of bsub; the first that matches decides. The texts are from the error table of lsbatch in LSF and
# volclava 2.2. A message that is not listed is AMBIGUOUS.
_TEXTS = (
    # bsub sent nothing.
    ("Connection refused by server", _TRANSIENT),
    ("Timeout on connect call to server", _TRANSIENT),
    ("LIM is down", _TRANSIENT),
    ("Unable to open file lsf.conf", _PERMANENT),
    ("Batch service not registered", _PERMANENT),
    ("LSB_SHAREDIR not defined", _PERMANENT),
    # bsub prints these even for jobs that LSF has: it sent the request, and the answer failed.
    ("ommunication time", _AMBIGUOUS),
    ("Failed in an LSF library call", _AMBIGUOUS),
    ("System call failed", _AMBIGUOUS),
    ("daemon internal error", _AMBIGUOUS),
    ("library internal error", _AMBIGUOUS),
    ("Cannot allocate memory", _AMBIGUOUS),
    ("protocol error", _AMBIGUOUS),
    ("encode/decode error", _AMBIGUOUS),
    ("Server is not connected", _AMBIGUOUS),
    ("Child process died", _AMBIGUOUS),
    # mbatchd refused the job for now; a retry may succeed.
    ("Queue has been closed", _TRANSIENT),
    ("has reached its job limit", _TRANSIENT),
    ("threshold reached", _TRANSIENT),
    ("does not have enough", _TRANSIENT),
    ("No job Id can be used now", _TRANSIENT),
    ("currently eligible", _TRANSIENT),
    ("Batch daemon cannot fork", _TRANSIENT),
    ("is closed for advance reservation", _TRANSIENT),
    # mbatchd refuses every job of this user or this machine.
    ("User permission denied", _PERMANENT),
    ("Request from non-LSF host rejected", _PERMANENT),
    ("Root job submission is disabled", _PERMANENT),
    ("Unknown user", _PERMANENT),
    ("No user is defined in the lsb.users file", _PERMANENT),
    ("authentication", _PERMANENT),
    # For any other "not submitted", LSF refused what this job requests; a site's esub prints its own message
    # before that.
    ("Job not submitted.", _INVALID),
    ("Request aborted by esub", _INVALID),
    ("Usage: bsub", _INVALID),
)
# bsub begins with its own name, and prints how it is used after an option that it does not know.
classify_failure = SubmitErrors(command="bsub", texts=_TEXTS, noise=r"^bsub: |\s*Usage: bsub(?s:.*)").failure
