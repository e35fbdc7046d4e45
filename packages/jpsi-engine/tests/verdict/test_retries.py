"""The decision on another attempt follows from the request, the end and the earlier retries alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jpsi import JobAttributes, JobSpec, JobState, JobStatus, Reason, ResourceSpecV1
from jpsi_engine.verdict.retries import REASONS, Retry, decide_retry, retry_problems

TIME = datetime(2026, 11, 28, 21, tzinfo=UTC)
GIB = 2**30


def spec_of(retry: dict[Any, Any], memory: int | None = None, seconds: float | None = None) -> JobSpec:
    duration = None if seconds is None else timedelta(seconds=seconds)
    return JobSpec(
        "prog",
        resources=ResourceSpecV1(memory=memory),
        attributes=JobAttributes(retry=retry, duration=duration, after=["17"]),
    )


def end(reason: Reason | None, code: int | None = None, state: JobState = JobState.FAILED) -> JobStatus:
    return JobStatus(state, time=TIME, exit_code=code, reason=reason)


@pytest.mark.parametrize("word", REASONS)
@pytest.mark.parametrize("reason", [*Reason, None])
@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELED])
def test_only_the_named_reason_leads_to_another_attempt(
    word: str, reason: Reason | None, state: JobState
) -> None:
    retry, why_not = decide_retry(spec_of({word: 1}), end(reason, state=state), [])

    is_named = REASONS[word] is reason and state is not JobState.COMPLETED
    assert (retry is not None) == is_named
    assert why_not == ""
    if retry is not None:
        assert (retry.reason, retry.memory, retry.duration) == (word, None, None)


@pytest.mark.parametrize("code", [75, "75"])
@pytest.mark.parametrize("reason", Reason)
def test_an_exit_code_counts_where_it_is_the_reason(code: object, reason: Reason) -> None:
    policy = {code: 1}
    is_reason = reason in {Reason.EXIT_CODE, Reason.SIGNAL}

    assert (decide_retry(spec_of(policy), end(reason, 75), [])[0] is not None) == is_reason
    assert decide_retry(spec_of(policy), end(reason, 76), [])[0] is None
    assert decide_retry(spec_of(policy), end(reason), [])[0] is None


@pytest.mark.parametrize(
    ("earlier", "is_retried"),
    [
        ([], True),
        (["timeout"], True),
        (["out_of_memory"] * 5, True),
        (["timeout", "75", "timeout"], False),
        (["timeout"] * 3, False),
    ],
)
def test_each_reason_has_its_own_count(earlier: list[str], is_retried: bool) -> None:
    spec = spec_of({"timeout": 2, "out_of_memory": 5, 75: 1})
    retry, why_not = decide_retry(spec, end(Reason.TIMEOUT), earlier)

    assert (retry is not None) == is_retried
    assert bool(why_not) != is_retried


@pytest.mark.parametrize(
    ("growth", "most", "requested", "earlier", "expected"),
    [
        (2, None, GIB, 0, 2 * GIB),
        (1.5, None, GIB, 2, 3 * GIB // 2),
        (2, 3 * GIB, 2 * GIB, 1, 3 * GIB),
        (2, 3 * GIB, 3 * GIB, 2, None),
        (2, GIB, 2 * GIB, 0, None),
        ([4 * GIB, 8 * GIB], None, GIB, 0, 4 * GIB),
        ([4 * GIB, 8 * GIB], None, 4 * GIB, 1, 8 * GIB),
        ([4 * GIB, 8 * GIB], None, 8 * GIB, 2, None),
    ],
)
def test_memory_grows_within_its_bound(
    growth: object, most: int | None, requested: int, earlier: int, expected: int | None
) -> None:
    policy = {"out_of_memory": 9, "grow_memory": growth, **({} if most is None else {"max_memory": most})}
    spec = spec_of(policy, requested)
    retry, why_not = decide_retry(spec, end(Reason.OUT_OF_MEMORY), ["out_of_memory"] * earlier)

    assert (None if retry is None else retry.memory) == expected
    assert ("the most memory" in why_not) == (expected is None)
    if retry is not None:
        grown = retry.grown(spec)
        assert isinstance(grown.resources, ResourceSpecV1)
        assert grown.resources.memory == expected


def test_memory_grows_by_one_list_whichever_word_its_end_has() -> None:
    spec = spec_of({"out_of_memory": 2, 137: 2, "grow_memory": [2 * GIB, 4 * GIB, 8 * GIB]}, 2 * GIB)

    retry, _ = decide_retry(spec, end(Reason.SIGNAL, 137), ["out_of_memory"])

    assert retry is not None
    assert retry.memory == 4 * GIB


def test_memory_grows_after_a_kill_that_nothing_explains() -> None:
    spec = spec_of({137: 1, "grow_memory": 2}, GIB)

    retry, _ = decide_retry(spec, end(Reason.SIGNAL, 137), [])

    assert retry is not None
    assert retry.memory == 2 * GIB


def test_the_duration_grows_after_a_timeout_alone() -> None:
    spec = spec_of({"timeout": 1, "preempted": 1, "grow_duration": 3}, seconds=60)

    retry, _ = decide_retry(spec, end(Reason.TIMEOUT), [])
    assert retry is not None
    assert retry.grown(spec).attributes.duration == timedelta(minutes=3)
    # the jobs that it waited for have ended
    assert retry.grown(spec).attributes.after is None
    assert retry.grown(spec, has_begun=False).attributes.after == ["17"]
    other, _ = decide_retry(spec, end(Reason.PREEMPTED), [])
    assert other is not None
    assert other.grown(spec).attributes.duration == timedelta(minutes=1)


@pytest.mark.parametrize(("earlier", "wait"), [(0, 10), (1, 20), (3, 80), (60, 86_400)])
def test_the_wait_doubles_up_to_a_day(earlier: int, wait: int) -> None:
    retry, _ = decide_retry(spec_of({"preempted": 99, "delay": 10}), end(Reason.PREEMPTED), ["75"] * earlier)

    assert retry is not None
    assert retry.not_before == TIME + timedelta(seconds=wait)
    assert Retry.from_content(retry.content) == retry


@pytest.mark.parametrize(
    "policy",
    [
        {"oom": 1},
        {0: 1},
        {256: 1},
        {"075": 1},
        {75: True},
        {"timeout": -1},
        {"timeout": 1.5},
        {"timeout": "1"},
        {"delay": -1},
        {"delay": float("nan")},
        {"timeout": 1, "grow_duration": 1},
        {"timeout": 1, "grow_duration": []},
        {"timeout": 1, "grow_duration": [2, 1]},
        {"timeout": 1, "grow_duration": "2"},
        {"grow_duration": 2},
        {"out_of_memory": 1, "grow_memory": 2},
    ],
    ids=str,
)
def test_a_wrong_policy_is_reported_and_decides_nothing(policy: dict[Any, Any]) -> None:
    spec = spec_of(policy, seconds=60)

    assert len(retry_problems(spec)) == 1
    assert decide_retry(spec, end(Reason.TIMEOUT), [])[0] is None


def test_a_policy_that_is_right_has_no_problems() -> None:
    policy = {**dict.fromkeys(REASONS, 3), 75: 2, "99": 0, "delay": 0.5, "max_duration": 7200}
    spec = spec_of({**policy, "grow_memory": 2, "grow_duration": [120, 240]}, GIB, 60)

    assert retry_problems(spec) == []
    assert retry_problems(JobSpec("prog")) == []
