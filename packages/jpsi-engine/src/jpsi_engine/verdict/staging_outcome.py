"""Adds the outcome of staging to the final status of a job."""

from __future__ import annotations

import attrs

from jpsi import JobStatus
from jpsi.plugin import JobState, Reason
from jpsi_engine.verdict.exit_phases import ALSO, CLEANUP, STAGE_OUT

_FAILED = "failed"


def parse_exit_phase(detail: str) -> str:
    """Return the phase in which a run ended, from the detail of its exit marker.

    >>> parse_exit_phase("executable-stage_out")
    'executable'
    """
    return detail.partition(ALSO)[0]


def add_staging_outcome(status: JobStatus, detail: str) -> JobStatus:
    """Add the phase that failed after the run, by the detail of its exit marker, to a final status.

    A completed job whose stage out failed becomes FAILED, as its results are not where the user asked for
    them. A failed cleanup, which only leaves files behind, does not change the state.
    """
    failed_phase = detail.partition(ALSO)[2]
    if not failed_phase:
        return status
    annotated = attrs.evolve(status, metadata={**status.metadata, failed_phase: _FAILED})
    if failed_phase != STAGE_OUT or status.state is not JobState.COMPLETED:
        return annotated
    message = "the executable returned exit code 0"
    return attrs.evolve(annotated, state=JobState.FAILED, reason=Reason.STAGING, message=message)


def failed_staging_phase(status: JobStatus) -> str:
    """Return the phase of staging that failed after the job, by its final status; empty if none did."""
    return next((it for it in (STAGE_OUT, CLEANUP) if status.metadata.get(it) == _FAILED), "")
