"""Classifies failures of qsub: the job is refused, can be retried, or may have been accepted nevertheless.

The engine decides by it whether to submit the job again: a wrong answer would run a job twice that Grid
Engine already has.
"""

from __future__ import annotations

from jpsi.plugin import FailureKind
from jpsi.plugin.kit import SubmitErrors

_AMBIGUOUS, _TRANSIENT = FailureKind.AMBIGUOUS, FailureKind.TRANSIENT
_INVALID, _PERMANENT = FailureKind.INVALID_JOB, FailureKind.PERMANENT

# Messages of qsub; the first that matches decides. The texts are from qsub and sge_qmaster of 8.1.9; a
# message that is not listed is AMBIGUOUS.
_TEXTS = (
    # qsub sent the request and got no answer.
    ("failed receiving gdi request", _AMBIGUOUS),
    ("Error reading answer list from qmaster", _AMBIGUOUS),
    # qsub sent nothing.
    ("unable to send message to qmaster", _TRANSIENT),
    ("failed sending gdi request", _TRANSIENT),
    ("SGE_ROOT", _PERMANENT),
    # The master, or a site's own rules (jsv(1)), refused the job for now; a retry may succeed.
    ("jobs are allowed per user", _TRANSIENT),
    ("jobs are allowed per cluster", _TRANSIENT),
    ("rejected temporarily", _TRANSIENT),
    ("temporarily rejected job", _TRANSIENT),
    ("couldn't be written", _TRANSIENT),
    ("can't be written", _TRANSIENT),
    # The master refuses every job of this user or this machine.
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
classify_failure = SubmitErrors(
    command="qsub",
    texts=_TEXTS,
    # qsub itself did not understand an option or a value, and sent nothing.
    own_codes={2, 7},
    own_words=("qsub: ",),
    noise=r"\A(Unable to run job: |qsub: )+| Exiting\.\Z",
).failure
