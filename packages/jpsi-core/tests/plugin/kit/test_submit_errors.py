"""What a failed submission means."""

from __future__ import annotations

import pytest

from jpsi.plugin import CommandResult, FailureKind
from jpsi.plugin.kit import SubmitErrors

ERRORS = SubmitErrors(
    command="asub",
    texts=(("no answer", FailureKind.AMBIGUOUS), ("no server", FailureKind.TRANSIENT)),
    own_codes={2},
    own_words=("asub: ",),
    noise=r"asub: ",
)


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (1, "asub: no server", FailureKind.TRANSIENT),
        (1, "no server, no answer", FailureKind.AMBIGUOUS),
        (2, "asub: whatever", FailureKind.INVALID_JOB),
        (2, "whatever", FailureKind.AMBIGUOUS),
        (1, "asub: whatever", FailureKind.AMBIGUOUS),
        (127, "sh: asub: not found", FailureKind.PERMANENT),
        (127, "", FailureKind.AMBIGUOUS),
    ],
)
def test_words_count_before_codes(code: int, said: str, kind: FailureKind) -> None:
    assert ERRORS.failure(CommandResult(returncode=code, stderr=said)).kind is kind
    assert ERRORS.failure(CommandResult(returncode=code, stdout=said)).kind is kind


def test_the_message_names_the_command_once() -> None:
    assert ERRORS.failure(CommandResult(returncode=2, stderr="asub: no\n")).message == "asub: no"


def test_without_noise_all_that_was_said_is_kept() -> None:
    errors = SubmitErrors(command="asub", texts=())

    assert errors.failure(CommandResult(returncode=2, stderr="a  b\nc")).message == "asub: a b c"
