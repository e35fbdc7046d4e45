"""Classifies failures of sbatch: the job is refused, can be retried, or may have been accepted nevertheless.

The engine decides by it whether to submit the job again: a wrong answer would run a job twice that Slurm
already has.
"""

from __future__ import annotations

from jpsi.plugin import FailureKind
from jpsi.plugin.kit import SubmitErrors

_AMBIGUOUS, _TRANSIENT = FailureKind.AMBIGUOUS, FailureKind.TRANSIENT
_INVALID, _PERMANENT = FailureKind.INVALID_JOB, FailureKind.PERMANENT

# Messages of sbatch; the first that matches decides. The texts are from slurm_errno.c and sbatch.c of
# Slurm 22.05 and from observed failures; a message that is not listed is AMBIGUOUS.
_TEXTS = (
    # sbatch sent the request and got no answer: Slurm has been seen to run such a job.
    ("Socket timed out on send/recv operation", _AMBIGUOUS),
    ("Zero Bytes were transmitted or received", _AMBIGUOUS),
    ("Unable to contact slurm controller (receive failure)", _AMBIGUOUS),
    ("Unable to contact slurm controller (send failure)", _AMBIGUOUS),
    # sbatch sent nothing.
    ("Unable to contact slurm controller (connect failure)", _TRANSIENT),
    ("auth_g_create: REQUEST_SUBMIT_BATCH_JOB has authentication error", _TRANSIENT),
    ("talking to database", _TRANSIENT),
    ("talking to the database", _TRANSIENT),
    ("known by database", _PERMANENT),
    ("invalid entry for --cluster", _PERMANENT),
    ("Unable to process configuration file", _PERMANENT),
    ("Could not establish a configuration source", _PERMANENT),
    # The controller refused the job for now; a retry may succeed.
    ("MaxSubmitJob", _TRANSIENT),
    ("GrpSubmitJobs", _TRANSIENT),
    ("Unable to create job record, try again", _TRANSIENT),
    ("Reached maximum number of jobs", _TRANSIENT),
    ("Requested nodes are busy", _TRANSIENT),
    ("Resource temporarily unavailable", _TRANSIENT),
    ("I/O error writing script/environment to file", _TRANSIENT),
    ("Slurm backup controller in standby mode", _TRANSIENT),
    ("Controller is in standby mode", _TRANSIENT),
    ("Required partition not available (inactive or drain)", _TRANSIENT),
    ("Partition in DOWN state", _TRANSIENT),
    ("Required node not available", _TRANSIENT),
    ("Requested reservation not usable now", _TRANSIENT),
    ("System submissions disabled", _TRANSIENT),
    # The controller refuses every job of this user or this machine.
    ("Incompatible versions of client and server code", _PERMANENT),
    ("Access/permission denied", _PERMANENT),
    ("Invalid user id", _PERMANENT),
    ("Invalid group id", _PERMANENT),
    # The controller, or sbatch itself, refuses this job; a site's own rules in job_submit.lua and
    # cli_filter.lua produce only these messages.
    ("Batch job submission failed: Unspecified error", _INVALID),
    ("cli_filter plugin terminated with error", _INVALID),
    ("Invalid numeric value", _INVALID),
    ("Access denied to requested reservation", _INVALID),
    ("Batch job submission failed: Invalid ", _INVALID),
    ("Batch job submission failed: Requested ", _INVALID),
    ("Batch job submission failed: Job ", _INVALID),
    ("Batch job submission failed: Memory ", _INVALID),
    ("Burst Buffer ", _INVALID),
    ("CPU count specification invalid", _INVALID),
    ("Circular job dependency", _INVALID),
    ("Duplicate generic resource", _INVALID),
    ("Invalid Trackable RESource", _INVALID),
    ("Invalid generic resource (gres) specification", _INVALID),
    ("Job size specification needs to be provided", _INVALID),
    ("More processors requested than permitted", _INVALID),
    ("Multiple partition job request not supported", _INVALID),
    ("No partition specified or system default partition", _INVALID),
    ("Node count specification invalid", _INVALID),
    ("Only batch jobs are accepted", _INVALID),
    ("Pathname of a file, directory or other parameter too long", _INVALID),
    ("Task count specification invalid", _INVALID),
    ("Task distribution specification invalid", _INVALID),
    ("User's group not permitted to use this partition", _INVALID),
    ("This does not look like a batch script", _INVALID),
    ("Batch script contains DOS line breaks", _INVALID),
    ("contain a NULL character", _INVALID),
    ("Batch script is empty", _INVALID),
)
classify_failure = SubmitErrors(
    command="sbatch",
    texts=_TEXTS,
    # sbatch did not know an option or a value, and sent nothing. ssh too exits so if its connection breaks.
    own_codes={255},
    own_words=("sbatch: ", "Invalid "),
    noise="sbatch: (error: )?",
).failure
