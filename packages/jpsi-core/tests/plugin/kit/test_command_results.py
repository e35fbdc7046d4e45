"""Results of commands: ids, tags, times and complaints, in the forms that several batch systems have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jpsi.plugin import CommandResult, FailureKind
from jpsi.plugin.kit import IdForm, SubmitErrors, ids_by_tag, parse_time, refusals, require_one_id

IDS = ["17", "18"]


def result(code: int = 0, *, timed_out: bool = False) -> CommandResult:
    return CommandResult(returncode=code, stderr="it failed", timed_out=timed_out)


def test_a_successful_command_changed_all_jobs_without_a_message() -> None:
    assert refusals(result(), IDS, {}) == {}
    assert refusals(result(), IDS, {"18": "denied"}) == {"18": "denied"}


def test_a_failure_without_a_message_about_any_job_is_for_all_jobs() -> None:
    assert refusals(result(1), IDS, {}) == {"17": "it failed", "18": "it failed"}
    assert refusals(result(timed_out=True), IDS, {}) == dict.fromkeys(IDS, "no answer in time")


def test_a_failure_with_messages_is_for_those_jobs() -> None:
    assert refusals(result(1), IDS, {"18": "denied"}) == {"18": "denied"}


def test_no_output_is_a_failure_if_the_command_reports_success() -> None:
    assert refusals(result(1), IDS, {}, changed={"17"}) == {"18": "it failed"}
    assert refusals(result(1), IDS, {"18": "denied"}, changed=()) == {"17": "it failed", "18": "denied"}


def test_a_job_that_needs_no_change_is_no_failure() -> None:
    assert refusals(result(1), IDS, {"17": "is over", "18": "denied"}, harmless=["over"]) == {"18": "denied"}


def test_a_job_that_needs_no_change_does_not_excuse_another() -> None:
    """The message of the whole command has the words about the one job."""
    cut_off = CommandResult(returncode=1, stderr="17 is over\nconnection lost\n")

    assert refusals(cut_off, IDS, {"17": "is over"}, harmless=["over"], changed=()).keys() == {"18"}


def test_messages_about_other_jobs_are_ignored() -> None:
    assert refusals(result(), IDS, {"19": "denied"}) == {}


@pytest.mark.parametrize("text", ["name jpsi-5-1", "jpsi-5-1", "name.jpsi-5-1", "jpsi-5-1\n", "A=jpsi-5-1"])
def test_a_tag_is_found_at_the_end(text: str) -> None:
    assert ids_by_tag([(text, "17")], ["jpsi-5-1"]) == {"jpsi-5-1": "17"}


@pytest.mark.parametrize("text", ["", "jpsi-5-1 name", "jpsi-5-11", "xjpsi-5-1"])
def test_text_that_resembles_a_tag_is_no_tag(text: str) -> None:
    assert ids_by_tag([(text, "17")], ["jpsi-5-1"]) == {}


def test_the_oldest_of_several_jobs_with_one_tag_is_found() -> None:
    assert ids_by_tag([("a", "9"), ("a", "10"), ("a", "8.server")], ["a"]) == {"a": "8.server"}


@pytest.mark.parametrize("text", ["", "N/A", "-/-", "Unknown", "Sat Nov 40 09:00:42 2026", "9" * 40])
def test_text_that_is_no_time_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_the_months_of_ctime_are_english_whatever_the_locale() -> None:
    assert parse_time("Fri Dec  4 09:00:42 2026") == datetime(2026, 12, 4, 9, 0, 42, tzinfo=UTC)


FORM = IdForm("ACME", r"[1-9][0-9]*", largest=100)


@pytest.mark.parametrize("text", ["", "0", "-1", "17\n", "17 18", "101", "all"])
def test_text_that_is_no_id_is_refused_with_the_name_of_the_system(text: str) -> None:
    assert not FORM.is_id(text)
    with pytest.raises(ValueError, match="is no job id of ACME's"):
        FORM.canonical(text)


def test_an_id_is_its_own_spelling() -> None:
    assert FORM.canonical("100") == "100"


def test_one_id_may_be_printed_twice() -> None:
    assert require_one_id(["17", "17"], "17 17") == "17"


@pytest.mark.parametrize(("found", "what"), [([], "no job id"), (["2", "1"], r"several job ids \(1, 2\)")])
def test_output_without_exactly_one_id_is_refused_and_quoted(found: list[str], what: str) -> None:
    with pytest.raises(ValueError, match=rf"{what} in the answer 'printed'"):
        require_one_id(found, "printed\n")


ERRORS = SubmitErrors(
    command="asub",
    texts=(("no answer", FailureKind.AMBIGUOUS), ("no server", FailureKind.TRANSIENT)),
    own_codes={2},
    own_words=("asub: ",),
    noise=r"asub: ",
)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
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
def test_messages_have_precedence_over_exit_codes(code: int, message: str, kind: FailureKind) -> None:
    assert ERRORS.failure(CommandResult(returncode=code, stderr=message)).kind is kind
    assert ERRORS.failure(CommandResult(returncode=code, stdout=message)).kind is kind


def test_the_message_names_the_command_once() -> None:
    assert ERRORS.failure(CommandResult(returncode=2, stderr="asub: no\n")).message == "asub: no"


def test_output_without_noise_is_kept_completely() -> None:
    errors = SubmitErrors(command="asub", texts=())

    assert errors.failure(CommandResult(returncode=2, stderr="a  b\nc")).message == "asub: a b c"
