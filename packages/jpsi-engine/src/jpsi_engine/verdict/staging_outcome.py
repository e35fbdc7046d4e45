"""What staging adds to how a job ended."""

from __future__ import annotations

import attrs

from jpsi import JobStatus
from jpsi.plugin import JobState, Reason
from jpsi_engine.verdict.exit_phases import ALSO, CLEANUP, STAGE_OUT

_FAILED = "failed"


def phase_of(detail: str) -> str:
    """The phase in which a run ended, from its exit marker.

    >>> phase_of("executable-stage_out")
    'executable'
    """
    return detail.partition(ALSO)[0]


def with_staging(status: JobStatus, detail: str) -> JobStatus:
    """A final status with what failed after the phase in which the run ended, from its exit marker.

    Results that are not where they were asked for are no success; files that are still there are.
    """
    failed = detail.partition(ALSO)[2]
    if not failed:
        return status
    told = attrs.evolve(status, metadata={**status.metadata, failed: _FAILED})
    if failed != STAGE_OUT or status.state is not JobState.COMPLETED:
        return told
    message = "the executable returned exit code 0"
    return attrs.evolve(told, state=JobState.FAILED, reason=Reason.STAGING, message=message)


def what_failed(status: JobStatus) -> str:
    """What of staging failed after the job, by a final status; empty if nothing did."""
    return next((it for it in (STAGE_OUT, CLEANUP) if status.metadata.get(it) == _FAILED), "")
