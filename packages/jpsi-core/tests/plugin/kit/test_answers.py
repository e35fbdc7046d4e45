"""Answers of commands, in the forms that several batch systems have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import moment, refusals, tagged

IDS = ["17", "18"]


def result(code: int = 0, *, timed_out: bool = False) -> CommandResult:
    return CommandResult(returncode=code, stderr="it failed", timed_out=timed_out)


def test_a_command_that_succeeded_has_changed_all_but_those_that_it_complained_of() -> None:
    assert refusals(result(), IDS, {}) == {}
    assert refusals(result(), IDS, {"18": "denied"}) == {"18": "denied"}


def test_a_failure_without_a_word_about_any_job_is_that_of_all() -> None:
    assert refusals(result(1), IDS, {}) == {"17": "it failed", "18": "it failed"}
    assert refusals(result(timed_out=True), IDS, {}) == dict.fromkeys(IDS, "no answer in time")


def test_a_failure_with_complaints_is_that_of_those_jobs() -> None:
    assert refusals(result(1), IDS, {"18": "denied"}) == {"18": "denied"}


def test_where_success_is_told_silence_is_none() -> None:
    assert refusals(result(1), IDS, {}, done={"17"}) == {"18": "it failed"}
    assert refusals(result(1), IDS, {"18": "denied"}, done=()) == {"17": "it failed", "18": "denied"}


def test_a_job_that_needs_no_change_is_no_failure() -> None:
    assert refusals(result(1), IDS, {"17": "is over", "18": "denied"}, over=["over"]) == {"18": "denied"}


def test_that_one_job_needs_no_change_says_nothing_of_another() -> None:
    """The complaint of the whole command has the words that are about the one."""
    cut_off = CommandResult(returncode=1, stderr="17 is over\nconnection lost\n")

    assert refusals(cut_off, IDS, {"17": "is over"}, over=["over"], done=()).keys() == {"18"}


def test_complaints_about_other_jobs_are_passed_over() -> None:
    assert refusals(result(), IDS, {"19": "denied"}) == {}


@pytest.mark.parametrize("text", ["name jpsi-5-1", "jpsi-5-1", "name.jpsi-5-1", "jpsi-5-1\n", "A=jpsi-5-1"])
def test_a_tag_is_found_at_the_end(text: str) -> None:
    assert tagged([(text, "17")], ["jpsi-5-1"]) == {"jpsi-5-1": "17"}


@pytest.mark.parametrize("text", ["", "jpsi-5-1 name", "jpsi-5-11", "xjpsi-5-1"])
def test_what_only_looks_like_a_tag_is_none(text: str) -> None:
    assert tagged([(text, "17")], ["jpsi-5-1"]) == {}


def test_the_oldest_of_several_jobs_with_one_tag_is_found() -> None:
    assert tagged([("a", "9"), ("a", "10"), ("a", "8.server")], ["a"]) == {"a": "8.server"}


@pytest.mark.parametrize("text", ["", "N/A", "-/-", "Unknown", "Sat Nov 40 09:00:42 2026", "9" * 40])
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment(text) is None


def test_the_months_of_ctime_are_english_whatever_the_locale() -> None:
    assert moment("Fri Dec  4 09:00:42 2026") == datetime(2026, 12, 4, 9, 0, 42, tzinfo=UTC)
