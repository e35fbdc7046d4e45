"""The kinds of failures of a submission."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import FailureKind
from jpsi_gridengine import hooks
from jpsi_testing import command_result

_NO = "Unable to run job: "


@pytest.mark.parametrize(
    ("returncode", "stderr", "kind"),
    [
        (1, f'{_NO}denied: "1digit" is not a valid object name\nExiting.\n', FailureKind.INVALID_JOB),
        (1, f"{_NO}Dot ('.') not allowed as first character of objectname\n", FailureKind.INVALID_JOB),
        (
            1,
            (
                f'{_NO}No cluster queue or queue instance matches the phrase "@"\n'
                'Job was rejected because job requests unknown queue "@"\nExiting.\n'
            ),
            FailureKind.INVALID_JOB,
        ),
        (1, f"{_NO}JSV rejected job\nExiting.\n", FailureKind.INVALID_JOB),
        (1, f"{_NO}JSV temporarily rejected job\nExiting.\n", FailureKind.TRANSIENT),
        (
            1,
            f"{_NO}job rejected: only 10 jobs are allowed per user (current job count: 10)\nExiting.\n",
            FailureKind.TRANSIENT,
        ),
        (1, f'{_NO}denied: host "x" is not a submit host\nExiting.\n', FailureKind.PERMANENT),
        (
            1,
            (
                f"{_NO}failed receiving gdi request response for mid=1 "
                "(got syncron message receive timeout error).\nExiting.\n"
            ),
            FailureKind.AMBIGUOUS,
        ),
        (1, f"{_NO}Error reading answer list from qmaster\nExiting.\n", FailureKind.AMBIGUOUS),
        (1, "critical error: Please set the environment variable SGE_ROOT.\n", FailureKind.PERMANENT),
        (2, 'qsub: invalid option argument "--nosuch"\n', FailureKind.INVALID_JOB),
        (127, "sh: 1: qsub: not found\n", FailureKind.PERMANENT),
        (1, f"{_NO}something of the site's own\nExiting.\n", FailureKind.AMBIGUOUS),
        (1, "", FailureKind.AMBIGUOUS),
    ],
)
def test_failures_are_classified(returncode: int, stderr: str, kind: FailureKind) -> None:
    assert hooks.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind is kind


@given(st.text(alphabet="abcdfghi xyz/().\n", max_size=60), st.integers(1, 254))
def test_an_unknown_message_is_ambiguous(stderr: str, returncode: int) -> None:
    assert (
        hooks.classify_failure(command_result(stderr=stderr, returncode=returncode)).kind
        is FailureKind.AMBIGUOUS
    )


def test_the_message_is_that_of_grid_engine() -> None:
    found = hooks.classify_failure(
        command_result(stderr=f'{_NO}unknown resource "x"\nExiting.\n', returncode=1)
    )

    assert found.message == 'qsub: unknown resource "x"'
