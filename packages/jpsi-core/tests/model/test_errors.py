"""The exception tree, and that each of them reads as a sentence."""

from __future__ import annotations

import pickle

import pytest

from jpsi.job import Job
from jpsi.model import errors
from jpsi.model.errors import (
    BulkException,
    ConfigError,
    DocumentError,
    InvalidJobException,
    JpsiError,
    PluginError,
    SubmitException,
    TransferError,
    TransportError,
    UnreachableStateException,
)
from jpsi.model.states import JobState, JobStatus

STATUS = JobStatus(JobState.FAILED, exit_code=3)
ALL = [
    JpsiError("a sentence"),
    InvalidJobException("a sentence"),
    DocumentError("a sentence"),
    SubmitException("a sentence"),
    BulkException("a sentence"),
    TransportError("a sentence"),
    TransferError("a sentence"),
    UnreachableStateException("a sentence", STATUS),
    PluginError("a sentence"),
    ConfigError("a sentence"),
]


def of(error: BaseException) -> str:
    return type(error).__name__


def test_this_table_has_every_exception() -> None:
    there_are = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
    }

    assert there_are == {of(error) for error in ALL}


@pytest.mark.clause("exception-message")
@pytest.mark.parametrize("error", ALL, ids=of)
def test_every_exception_has_the_common_root_and_reads_as_its_message(error: JpsiError) -> None:
    assert isinstance(error, JpsiError)
    assert error.message == "a sentence"
    assert str(error) == "a sentence"


def test_document_error_is_an_invalid_job() -> None:
    assert issubclass(DocumentError, InvalidJobException)


@pytest.mark.clause("exception-cause")
@pytest.mark.parametrize(
    "kind", [JpsiError, InvalidJobException, DocumentError, SubmitException, PluginError, ConfigError]
)
def test_underlying_exception_is_kept(kind: type[JpsiError]) -> None:
    cause = OSError("disk")

    assert kind("a sentence", cause).exception is cause
    assert kind("a sentence").exception is None


@pytest.mark.clause("exception-transient")
def test_a_submit_exception_is_transient_only_on_request() -> None:
    assert [
        SubmitException("no").transient,
        SubmitException("not now", transient=True).transient,
    ] == [False, True]


def test_bulk_exception_names_every_job_and_the_first_reasons() -> None:
    done, failed = Job(), {Job(): SubmitException(f"reason {number % 5}") for number in range(9)}

    error = BulkException.of("submitted", [done], failed)

    assert str(error) == (
        "9 of 10 jobs could not be submitted: reason 0; reason 1; reason 2; and 2 other reasons"
    )
    assert error.done == (done,)
    assert error.failed == failed
    assert error.exception is next(iter(failed.values()))


@pytest.mark.parametrize(
    ("failures", "transient"),
    [
        ([SubmitException("a", transient=True)], True),
        ([SubmitException("a", transient=True), SubmitException("b")], False),
        ([SubmitException("a", transient=True), InvalidJobException("b")], False),
    ],
)
def test_bulk_exception_is_transient_if_all_of_it_is(failures: list[JpsiError], transient: bool) -> None:
    error = BulkException.of("submitted", [], {Job(): failure for failure in failures})

    assert error.transient is transient


@pytest.mark.clause("exception-unreachable")
def test_unreachable_state_names_the_status_it_follows_from() -> None:
    assert UnreachableStateException("never", STATUS).status is STATUS


def test_problems_of_an_invalid_job_are_never_empty() -> None:
    assert InvalidJobException("wrong").problems == ("wrong",)


@pytest.mark.clause("exception-message")
def test_one_problem_is_in_the_same_line() -> None:
    error = InvalidJobException.of("job 1", ["executable is missing"])

    assert str(error) == "job 1 is not valid: executable is missing"
    assert error.problems == ("executable is missing",)


def test_several_problems_have_a_line_each() -> None:
    error = InvalidJobException.of("job 1", ["this", "that"])

    assert str(error) == "job 1 is not valid:\n  - this\n  - that"
    assert error.problems == ("this", "that")


def test_the_constructor_of_makes_the_class_it_is_called_on() -> None:
    assert type(DocumentError.of("a.yaml", ["wrong"])) is DocumentError


@pytest.mark.parametrize("error", ALL, ids=of)
def test_exception_survives_pickling(error: JpsiError) -> None:
    """Worker processes of concurrent.futures require it."""
    copied = pickle.loads(pickle.dumps(error))

    assert type(copied) is type(error)
    assert str(copied) == str(error)
