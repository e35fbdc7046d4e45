"""A failed sbatch: an unknown message is AMBIGUOUS, so that no job runs twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import FailureKind
from jpsi_slurm import hooks
from jpsi_testing import command_result

_FAILED = "sbatch: error: Batch job submission failed: "
_POLICY = f"{_FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"


@pytest.mark.parametrize(
    ("returncode", "stderr", "kind"),
    [
        (1, f"{_FAILED}Socket timed out on send/recv operation\n", FailureKind.AMBIGUOUS),
        (1, f"{_FAILED}Zero Bytes were transmitted or received\n", FailureKind.AMBIGUOUS),
        (1, f"{_FAILED}Unable to contact slurm controller (receive failure)\n", FailureKind.AMBIGUOUS),
        (1, f"{_FAILED}Protocol authentication error\n", FailureKind.AMBIGUOUS),
        (1, f"{_FAILED}Unable to contact slurm controller (connect failure)\n", FailureKind.TRANSIENT),
        (1, f"{_FAILED}Invalid partition name specified\n", FailureKind.INVALID_JOB),
        (1, f"{_FAILED}Unspecified error\n", FailureKind.INVALID_JOB),
        (1, f"{_FAILED}Invalid user id\n", FailureKind.PERMANENT),
        (1, f"{_FAILED}Access/permission denied\n", FailureKind.PERMANENT),
        (
            1,
            f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{_POLICY}",
            FailureKind.TRANSIENT,
        ),
        (
            1,
            _POLICY,
            FailureKind.INVALID_JOB,
        ),
        (255, "sbatch: unrecognized option '--nosuch=1'\n", FailureKind.INVALID_JOB),
        (255, "ssh: connect to host login port 22: Connection refused\n", FailureKind.AMBIGUOUS),
        (255, "", FailureKind.AMBIGUOUS),
        (127, "sh: 1: sbatch: not found\n", FailureKind.PERMANENT),
        (1, "", FailureKind.AMBIGUOUS),
        (-9, "", FailureKind.AMBIGUOUS),
    ],
)
def test_failures_are_classified(returncode: int, stderr: str, kind: FailureKind) -> None:
    assert hooks.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind is kind


@given(st.text(alphabet="abcdefgh xyz:/().\n", max_size=60), st.integers(1, 254))
def test_an_unknown_message_is_ambiguous(stderr: str, returncode: int) -> None:
    assert (
        hooks.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind
        is FailureKind.AMBIGUOUS
    )


def test_the_message_is_that_of_slurm() -> None:
    found = hooks.classify_failure(
        command_result(stderr=f"{_FAILED}Invalid qos specification\n", returncode=1)
    )

    assert found.message == "sbatch: Batch job submission failed: Invalid qos specification"
