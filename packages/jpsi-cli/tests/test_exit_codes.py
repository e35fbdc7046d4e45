from __future__ import annotations

import pytest

from jpsi import JobState, JobStatus, Reason
from jpsi_cli import exit_codes

CASES = {
    "completed": (JobStatus(JobState.COMPLETED, exit_code=0), 0),
    "completed, code unknown": (JobStatus(JobState.COMPLETED), 0),
    "exit code": (JobStatus(JobState.FAILED, exit_code=3, reason=Reason.EXIT_CODE), 3),
    "largest": (JobStatus(JobState.FAILED, exit_code=255, reason=Reason.EXIT_CODE), 255),
    "signal": (JobStatus(JobState.FAILED, exit_code=137, reason=Reason.SIGNAL), 137),
    "timeout": (JobStatus(JobState.FAILED, exit_code=143, reason=Reason.TIMEOUT), 124),
    "cancelled": (JobStatus(JobState.CANCELED, exit_code=143, reason=Reason.CANCELLED), 130),
    "no such executable": (JobStatus(JobState.FAILED, exit_code=127, reason=Reason.EXECUTABLE), 127),
    "lost": (JobStatus(JobState.FAILED, reason=Reason.LOST), 125),
    "lost with a code": (JobStatus(JobState.FAILED, exit_code=9, reason=Reason.LOST), 9),
    "failed with code 0": (JobStatus(JobState.FAILED, exit_code=0), 125),
    "no exit code of a process": (JobStatus(JobState.FAILED, exit_code=256), 125),
}


@pytest.mark.parametrize(("status", "code"), CASES.values(), ids=CASES)
def test_each_end_has_its_exit_code(status: JobStatus, code: int) -> None:
    assert exit_codes.for_status(status) == code
