"""What it means for a job that qsub failed: whether Grid Engine may have the job nonetheless."""

from __future__ import annotations

from jpsi.plugin import CommandResult, Failure, FailureKind, hookimpl
from jpsi.plugin.kit import SubmitErrors

_AMBIGUOUS, _TRANSIENT = FailureKind.AMBIGUOUS, FailureKind.TRANSIENT
_INVALID, _PERMANENT = FailureKind.INVALID_JOB, FailureKind.PERMANENT

# What qsub says, in the order in which it is looked for. Texts are those of qsub and sge_qmaster of 8.1.9;
# what stands in no line is AMBIGUOUS.
_TEXTS = (
    # The request was sent, and no answer came.
    ("failed receiving gdi request", _AMBIGUOUS),
    ("Error reading answer list from qmaster", _AMBIGUOUS),
    # Nothing was sent.
    ("unable to send message to qmaster", _TRANSIENT),
    ("failed sending gdi request", _TRANSIENT),
    ("SGE_ROOT", _PERMANENT),
    # The master, or a site's own rules (jsv(1)), refused it for now.
    ("jobs are allowed per user", _TRANSIENT),
    ("jobs are allowed per cluster", _TRANSIENT),
    ("rejected temporarily", _TRANSIENT),
    ("temporarily rejected job", _TRANSIENT),
    ("couldn't be written", _TRANSIENT),
    ("can't be written", _TRANSIENT),
    # The master refuses everything from here.
    ("is not a submit host", _PERMANENT),
    ("is neither submit nor admin host", _PERMANENT),
    ("is not allowed to submit jobs", _PERMANENT),
    ("authentication failed", _PERMANENT),
    # The master, a site's own rules, or qsub itself, refuses this job.
    ("job rejected: ", _INVALID),
    ("Job was rejected because ", _INVALID),
    ("Job is rejected", _INVALID),
    ("rejected job", _INVALID),
    ('" rejected: ', _INVALID),
    ("denied: ", _INVALID),
    ("No cluster queue or queue instance matches", _INVALID),
    ("unknown resource ", _INVALID),
    ("Unable to run job: attribute ", _INVALID),
    ("no suitable queues", _INVALID),
    ("the advance reservation id ", _INVALID),
    ("job name too long", _INVALID),
    ("objectname", _INVALID),
    ("Unable to read script file", _INVALID),
)
_ERRORS = SubmitErrors(
    command="qsub",
    texts=_TEXTS,
    # qsub itself, of an option or a value that it does not understand; nothing was sent.
    own_codes={2, 7},
    own_words=("qsub: ",),
    noise=r"\A(Unable to run job: |qsub: )+| Exiting\.\Z",
)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """What a failed qsub means."""
    return _ERRORS.failure(result)
