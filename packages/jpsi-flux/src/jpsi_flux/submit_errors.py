"""Classifies failed submissions: the job is refused, can be retried, or may have been accepted nevertheless.

The engine decides by it whether to submit the job again: a wrong answer would run a job twice that Flux
already has.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import CommandResult, Failure, FailureKind, hookimpl
from jpsi.plugin.kit import SubmitErrors

from .submit import parse_printed_ids

_TRANSIENT, _PERMANENT = FailureKind.TRANSIENT, FailureKind.PERMANENT
_INVALID, _AMBIGUOUS = FailureKind.INVALID_JOB, FailureKind.AMBIGUOUS

# Messages of `flux submit`, `bulksubmit` and `batch`; the first that matches decides, and a message that is
# not listed is AMBIGUOUS. Errors of the client and of the broker have the same exit code and, with `flux
# batch`, the same form. The texts are from flux-core 0.58 and 0.88.
_TEXTS = (
    # The client sent nothing, and a retry on this machine will not succeed.
    ("Unable to connect to Flux: Unable to find connector", _PERMANENT),
    ("Unable to connect to Flux: Permission denied", _PERMANENT),
    ("Unable to connect to Flux: Invalid argument", _PERMANENT),
    # The instance is not running, or not yet.
    ("Unable to connect to Flux", _TRANSIENT),
    # Job submission is disabled, or Flux's module for it is not loaded.
    ("job submission to ", _TRANSIENT),
    ("job submission is disabled", _TRANSIENT),
    ("Function not implemented", _TRANSIENT),
    # The instance belongs to another user, or requires another signature of the job.
    ("signer=", _PERMANENT),
    # The broker refuses this job: EPERM, EINVAL and EOVERFLOW.
    ("[Errno 1] ", _INVALID),
    ("[Errno 22] ", _INVALID),
    ("[Errno 75] ", _INVALID),
    # The broker refuses this job, in the messages of `flux batch`.
    ("unsatisfiable request", _INVALID),
    ("Invalid queue", _INVALID),
    ("is not a valid queue", _INVALID),
    ("exceeds policy limit", _INVALID),
    ("dependency: ", _INVALID),
    ("dependency scheme", _INVALID),
    ("urgency range", _INVALID),
    ("host constraint", _INVALID),
    ("invalid jobspec", _INVALID),
    ("only the instance owner", _INVALID),
    # The client does not understand an option or a value.
    ("unrecognized arguments", _INVALID),
    ("invalid Flux standard duration", _INVALID),
    ("duration must ", _INVALID),
    ("node count must not be greater than", _INVALID),
    ("exclusive can only be set with a node count", _INVALID),
    ("Number of slots to allocate must be specified", _INVALID),
    ("job command and arguments are missing", _INVALID),
    ("does not appear to start with '#!'", _INVALID),
    ("JSON_ALLOW_NUL", _INVALID),
    ("invalid int value", _INVALID),
    ("Invalid datetime", _INVALID),
    ("Unknown flag", _INVALID),
    ("IDset(): Invalid argument", _INVALID),
    ("No corresponding rlimit", _INVALID),
    ("No such file or directory: '", _INVALID),
    ("--signal=", _INVALID),
)
_ERRORS = SubmitErrors(
    command="flux", texts=_TEXTS, noise=r"flux-(?:submit|bulksubmit|batch): ERROR: |\[Errno \d+\] "
)


@hookimpl
def classify_failure(result: CommandResult) -> Failure:
    """Return what a failed submission means for the job and for a retry."""
    # Flux repeats the message for each of several refused jobs
    messages = "".join(dict.fromkeys(result.stderr.splitlines(keepends=True)))
    failure = _ERRORS.failure(attrs.evolve(result, stderr=messages))
    return attrs.evolve(failure, kind=_AMBIGUOUS) if any(parse_printed_ids(result)) else failure
