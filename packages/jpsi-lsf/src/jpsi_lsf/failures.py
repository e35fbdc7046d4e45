"""What it means for a job that bsub failed: whether LSF may have the job nonetheless."""

from __future__ import annotations

from jpsi.plugin import CommandResult, Failure, FailureKind, hookimpl
from jpsi.plugin.kit import SubmitErrors

_AMBIGUOUS, _TRANSIENT = FailureKind.AMBIGUOUS, FailureKind.TRANSIENT
_INVALID, _PERMANENT = FailureKind.INVALID_JOB, FailureKind.PERMANENT

# What bsub says, in the order in which it is looked for: texts of the error table of lsbatch as LSF and
# volclava 2.2 have it. What stands in no line is AMBIGUOUS.
_TEXTS = (
    # Nothing was sent.
    ("Connection refused by server", _TRANSIENT),
    ("Timeout on connect call to server", _TRANSIENT),
    ("LIM is down", _TRANSIENT),
    ("Unable to open file lsf.conf", _PERMANENT),
    ("Batch service not registered", _PERMANENT),
    ("LSB_SHAREDIR not defined", _PERMANENT),
    # LSF says so of jobs that it has: the request was sent, and something went wrong with the answer.
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
    # mbatchd refused it for now.
    ("Queue has been closed", _TRANSIENT),
    ("has reached its job limit", _TRANSIENT),
    ("threshold reached", _TRANSIENT),
    ("does not have enough", _TRANSIENT),
    ("No job Id can be used now", _TRANSIENT),
    ("currently eligible", _TRANSIENT),
    ("Batch daemon cannot fork", _TRANSIENT),
    ("is closed for advance reservation", _TRANSIENT),
    # It refuses everything from here.
    ("User permission denied", _PERMANENT),
    ("Request from non-LSF host rejected", _PERMANENT),
    ("Root job submission is disabled", _PERMANENT),
    ("Unknown user", _PERMANENT),
    ("No user is defined in the lsb.users file", _PERMANENT),
    ("authentication", _PERMANENT),
    # Whatever else LSF calls not submitted was refused for what it asked for; a site's esub has words of its
    # own before that.
    ("Job not submitted.", _INVALID),
    ("Request aborted by esub", _INVALID),
    ("Usage: bsub", _INVALID),
)
_ERRORS = SubmitErrors(command="bsub", texts=_TEXTS)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """What a failed bsub means."""
    return _ERRORS.failure(result)
