"""The kinds of failures of bsub."""

from __future__ import annotations

import pytest

from jpsi.plugin import FailureKind
from jpsi_lsf import hooks
from jpsi_testing import command_result


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("normal: Queue has been closed. Job not submitted.", FailureKind.TRANSIENT),
        ("User <u>: Pending job threshold reached. Job not submitted.", FailureKind.TRANSIENT),
        ("Contacting batch daemon: Communication timeout. Job not submitted.", FailureKind.AMBIGUOUS),
        ("Master batch daemon internal error. Job not submitted.", FailureKind.AMBIGUOUS),
        ("lsb_init: Failed in an LSF library call: LIM is down; try later", FailureKind.TRANSIENT),
        (
            "Site policy: no weekend jobs\nRequest aborted by esub. Job not submitted.",
            FailureKind.INVALID_JOB,
        ),
        ("Something new. Job not submitted.", FailureKind.INVALID_JOB),
        ("Something else", FailureKind.AMBIGUOUS),
    ],
)
def test_failures_are_classified(stderr: str, kind: FailureKind) -> None:
    assert hooks.classify_failure(command_result(stderr=f"{stderr}\n", returncode=255)).kind is kind


def test_a_missing_bsub() -> None:
    assert (
        hooks.classify_failure(command_result(stderr="env: bsub: not found", returncode=127)).kind
        is FailureKind.PERMANENT
    )


def test_an_unknown_option_is_named_without_the_usage() -> None:
    """As volclava 2.2 says it, which has no -gpu."""
    usage = "bsub: illegal option -- gpu\nUsage: bsub [-h] [-V] [-x] [-H] [-r]\n\t\t[-L login_shell]\n"

    failure = hooks.classify_failure(command_result(stderr=usage, returncode=255))

    assert (failure.kind, failure.message) == (FailureKind.INVALID_JOB, "bsub: illegal option -- gpu")
