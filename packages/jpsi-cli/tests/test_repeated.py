"""The repetitions of jobs are found in one pass, and described in a sentence."""

from __future__ import annotations

import pytest

from jpsi import JobState
from jpsi_cli.stored_jobs import describe_repetitions, find_repetitions
from jpsi_engine.job_store import StoredJob
from stored_jobs import active_marker, encoded_end, stored_job


def job(job_id: str, state: JobState | None, repeats: str | None = None, array: str = "") -> StoredJob:
    """Return a job in a final state, or one that runs; without a state, one that was never submitted."""
    custom = {"jpsi.repeats": repeats} if repeats else {}
    if array:
        custom["jpsi.array_id"] = array
    if state is None:
        return stored_job(job_id, native_id=None, is_revoked=True, custom=custom)
    if state is JobState.ACTIVE:
        return stored_job(job_id, markers=[active_marker(job_id, 1)], custom=custom)
    return stored_job(job_id, final=encoded_end(state, 60, 1), custom=custom)


COMPLETED, FAILED, CANCELED, ACTIVE = (
    JobState.COMPLETED,
    JobState.FAILED,
    JobState.CANCELED,
    JobState.ACTIVE,
)


@pytest.mark.parametrize(
    ("later", "found"),
    [
        ([], {}),
        ([job("b", FAILED)], {}),
        ([job("b", ACTIVE, "a")], {"a": "b"}),
        ([job("b", FAILED, "a"), job("c", COMPLETED, "a")], {"a": "c"}),
        ([job("b", FAILED, "a"), job("c", ACTIVE, "b")], {"a": "c", "b": "c"}),
        ([job("b", COMPLETED, "a"), job("c", FAILED, "b")], {"a": "b", "b": "c"}),
        ([job("b", None, "a")], {}),
        ([job("b", None, "a"), job("c", ACTIVE, "b")], {"a": "c", "b": "c"}),
        ([job("b", FAILED, "a"), job("c", None, "a")], {"a": "b"}),
        ([job("b", FAILED, "b")], {"b": "b"}),
        ([job("b", FAILED, "c"), job("c", FAILED, "b")], {"b": "c", "c": "c"}),
    ],
)
def test_a_job_is_repeated_by_the_last_that_may_run(later: list[StoredJob], found: dict[str, str]) -> None:
    """A chain ends at what has not failed; damaged links, in a circle, do no harm."""
    repetitions = find_repetitions([job("a", FAILED), *later])

    assert {original: it.id for original, it in repetitions.items()} == found


@pytest.mark.parametrize(
    ("later", "sentence"),
    [
        ([], ""),
        ([job("b", COMPLETED, "1")], "B has repeated 1 of them, and completed"),
        (
            [job("b", COMPLETED, "1", "x"), job("c", COMPLETED, "2", "x")],
            "x has repeated them, and completed",
        ),
        ([job("b", FAILED, "1", "x"), job("c", FAILED, "2", "x")], "x has repeated them, and failed, too"),
        (
            [job("b", COMPLETED, "1", "x"), job("c", FAILED, "2", "x")],
            "x has repeated them: 1 COMPLETED, 1 FAILED",
        ),
        (
            [job("b", COMPLETED, "1", "x"), job("c", ACTIVE, "2", "x")],
            "x repeats them: 1 ACTIVE, 1 COMPLETED",
        ),
        ([job("b", ACTIVE, "1"), job("c", ACTIVE, "2")], "B and 1 more repeat them, and are ACTIVE"),
        (
            [job("b", CANCELED, "1"), job("c", CANCELED, "2")],
            "B and 1 more have repeated them, and were cancelled",
        ),
    ],
)
def test_repetitions_of_several_jobs_are_counted(later: list[StoredJob], sentence: str) -> None:
    failed = [job("1", FAILED), job("2", FAILED)]

    assert describe_repetitions(failed, find_repetitions([*failed, *later]), {"b": "B"}) == sentence


@pytest.mark.parametrize(
    ("state", "repetition", "sentence"),
    [
        (FAILED, COMPLETED, "b has repeated it, and completed"),
        (FAILED, FAILED, "b has repeated it, and failed, too"),
        (CANCELED, FAILED, "b has repeated it, and failed"),
        (CANCELED, CANCELED, "b has repeated it, and was cancelled, too"),
        (FAILED, ACTIVE, "b repeats it, and is ACTIVE"),
    ],
)
def test_the_repetition_of_one_job_is_named(state: JobState, repetition: JobState, sentence: str) -> None:
    """It is named by its own id, also if it is an element of an array."""
    jobs = [job("a", state), job("b", repetition, "a", "x")]

    assert describe_repetitions(jobs[:1], find_repetitions(jobs), {}) == sentence
