"""Statuses as plain values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jpsi.model.states import Evidence, JobState, JobStatus, Reason
from jpsi_engine.spool.status_values import decode_status, encode_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = JobStatus(
    JobState.FAILED,
    time=NOW,
    exit_code=7,
    message="it failed",
    metadata={"signal": 9},
    reason=Reason.EXIT_CODE,
    evidence=Evidence.MARKER,
)


@pytest.mark.parametrize("status", [FULL, JobStatus(JobState.QUEUED, time=NOW)])
def test_a_status_is_the_same_after_it_was_kept(status: JobStatus) -> None:
    assert decode_status(encode_status(status)) == status


@pytest.mark.parametrize("name", ["state", "time", "metadata"])
def test_required_fields_of_a_status_cannot_be_null(name: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode_status({**encode_status(FULL), name: None})
