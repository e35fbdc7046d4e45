"""The state model: its order, and what one report publishes."""

from __future__ import annotations

import copy
import itertools
import pickle
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.states import JobState, JobStatus, enriched, transitions
from jpsi.model.usage import JobUsage

NEW, QUEUED, ACTIVE = JobState.NEW, JobState.QUEUED, JobState.ACTIVE
COMPLETED, FAILED, CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED
FINAL = (COMPLETED, FAILED, CANCELED)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

states = st.sampled_from(JobState)
times = st.integers(-100, 100).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
statuses = st.builds(
    JobStatus,
    states,
    time=times,
    exit_code=st.none() | st.integers(0, 255),
    message=st.none() | st.text(max_size=3),
)


def at(state: JobState, seconds: int = 0, exit_code: int | None = None) -> JobStatus:
    return JobStatus(state, time=EPOCH + timedelta(seconds=seconds), exit_code=exit_code)


def published(reports: list[JobStatus], start: JobStatus) -> list[JobStatus]:
    """Return the whole history of a job that got these reports."""
    history = [start]
    for report in reports:
        history += transitions(history[-1], report)
    return history


def test_what_a_job_used_is_known_at_its_end() -> None:
    end = attrs.evolve(at(FAILED, 90), metadata={"used.cpu": 1.5, "used.memory": 3, "used.process_memory": 2})
    history = [at(NEW), at(QUEUED, 10), at(ACTIVE, 30), end]

    assert JobUsage.of(history) == JobUsage(
        wall_time=timedelta(minutes=1), cpu_time=timedelta(seconds=1.5), memory=3, process_memory=2
    )
    assert JobUsage.of(history[:-1]) == JobUsage()


def test_what_nothing_has_measured_is_not_known_to_be_zero() -> None:
    filled = published([at(COMPLETED, 5, exit_code=0)], at(NEW))

    assert [it.state for it in filled] == [NEW, QUEUED, ACTIVE, COMPLETED]
    assert JobUsage.of(filled) == JobUsage.of([at(NEW), at(CANCELED, 5)]) == JobUsage()


def test_the_wall_time_of_a_job_that_was_submitted_again_is_that_of_its_last_attempt() -> None:
    def ended(**metadata: object) -> JobUsage:
        end = attrs.evolve(at(COMPLETED, 90), metadata={"attempt": 2, **metadata})
        return JobUsage.of([at(NEW), at(QUEUED, 10), at(ACTIVE, 30), end])

    assert ended(attempt_started=at(NEW, 80).time.isoformat()).wall_time == timedelta(seconds=10)
    assert ended().wall_time is None


@pytest.mark.clause("state-final", "state-values")
def test_exactly_three_states_are_final() -> None:
    assert {COMPLETED, FAILED, CANCELED} == {state for state in JobState if state.final}


@pytest.mark.clause("status-metadata", "status-exit-code", "status-message")
def test_a_status_with_only_a_state_has_empty_metadata_and_none_elsewhere() -> None:
    status = JobStatus(QUEUED)

    assert (status.metadata, status.exit_code, status.message) == ({}, None, None)


@pytest.mark.clause("status-final")
@pytest.mark.parametrize("state", JobState, ids=str)
def test_status_is_final_as_its_state_is(state: JobState) -> None:
    assert JobStatus(state).final == state.final


@pytest.mark.clause("state-order")
@pytest.mark.parametrize(
    ("greater", "lesser"),
    [(QUEUED, NEW), (ACTIVE, QUEUED), (ACTIVE, NEW), *((final, ACTIVE) for final in FINAL)],
    ids=str,
)
def test_later_state_is_greater(greater: JobState, lesser: JobState) -> None:
    assert greater.is_greater_than(lesser) is True
    assert lesser.is_greater_than(greater) is False


@given(states)
def test_order_is_irreflexive(state: JobState) -> None:
    assert state.is_greater_than(state) is False


@given(states, states)
def test_order_is_antisymmetric(one: JobState, other: JobState) -> None:
    assert not (one.is_greater_than(other) and other.is_greater_than(one))


@pytest.mark.clause("state-order")
@given(states, states, states)
def test_order_is_transitive(one: JobState, two: JobState, three: JobState) -> None:
    if one.is_greater_than(two) and two.is_greater_than(three):
        assert one.is_greater_than(three) is True


@pytest.mark.clause("state-order")
@given(states, states)
def test_only_different_final_states_cannot_be_compared(one: JobState, other: JobState) -> None:
    incomparable = one.is_greater_than(other) is None

    assert incomparable == (one is not other and one.final and other.final)
    assert incomparable == (other.is_greater_than(one) is None)


@pytest.mark.clause("state-values")
def test_state_reads_as_its_name() -> None:
    assert [str(state) for state in JobState] == [state.name for state in JobState]


def test_status_is_frozen() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        JobStatus(NEW).state = QUEUED  # type: ignore[misc]  # what is tested


def test_status_can_be_copied_and_sent_to_another_process() -> None:
    status = JobStatus(COMPLETED, exit_code=0)

    assert copy.deepcopy(status) == status
    assert pickle.loads(pickle.dumps(status)) == status


def test_status_without_time_has_an_aware_one() -> None:
    assert JobStatus(NEW).time.utcoffset() == timedelta(0)


@pytest.mark.clause("status-message")
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (JobStatus(QUEUED), "QUEUED"),
        (JobStatus(COMPLETED, exit_code=0), "COMPLETED, exit code 0"),
        (JobStatus(FAILED, message="no such file"), "FAILED: no such file"),
        (JobStatus(FAILED, exit_code=7, message="it failed"), "FAILED, exit code 7: it failed"),
    ],
    ids=["bare", "code", "message", "code and message"],
)
def test_status_reads_as_a_sentence(status: JobStatus, text: str) -> None:
    assert str(status) == text


@pytest.mark.clause("state-missing", "status-skipped")
@pytest.mark.parametrize(
    ("current", "report", "expected"),
    [
        (NEW, at(QUEUED), [QUEUED]),
        (NEW, at(ACTIVE), [QUEUED, ACTIVE]),
        (NEW, at(COMPLETED, exit_code=0), [QUEUED, ACTIVE, COMPLETED]),
        (NEW, at(COMPLETED), [QUEUED, ACTIVE, COMPLETED]),
        (NEW, at(FAILED, exit_code=1), [QUEUED, ACTIVE, FAILED]),
        (NEW, at(FAILED), [QUEUED, FAILED]),
        (NEW, at(CANCELED), [QUEUED, CANCELED]),
        (NEW, at(CANCELED, exit_code=143), [QUEUED, ACTIVE, CANCELED]),
        (QUEUED, at(CANCELED), [CANCELED]),
        (QUEUED, at(FAILED), [FAILED]),
        (QUEUED, at(COMPLETED), [ACTIVE, COMPLETED]),
        (ACTIVE, at(FAILED), [FAILED]),
        (ACTIVE, at(COMPLETED, exit_code=0), [COMPLETED]),
    ],
    ids=lambda value: str(value) if isinstance(value, JobState) else None,
)
def test_skipped_states_are_filled_in(current: JobState, report: JobStatus, expected: list[JobState]) -> None:
    """QUEUED always, ACTIVE only where the job is known to have run."""
    assert [status.state for status in transitions(at(current), report)] == expected


@pytest.mark.parametrize(
    ("current", "report"),
    [
        (current, report)
        for current in JobState
        for report in JobState
        if report is current or current.final or current.is_greater_than(report)
    ],
    ids=str,
)
def test_a_report_that_is_not_ahead_publishes_nothing(current: JobState, report: JobState) -> None:
    assert transitions(at(current), at(report, 1, 0)) == ()


@pytest.mark.clause("state-missing")
def test_filled_in_states_are_marked_and_the_report_is_unchanged() -> None:
    report = JobStatus(COMPLETED, time=EPOCH, exit_code=0, metadata={"a": 1})

    *filled, last = transitions(at(NEW), report)

    assert last is report
    assert [dict(status.metadata) for status in filled] == [
        {"filled_in": True, "time.source": "next_state"}
    ] * 2
    assert [status.exit_code for status in filled] == [None] * 2


def test_a_report_from_before_the_current_status_gets_its_time() -> None:
    report = JobStatus(FAILED, time=EPOCH - timedelta(hours=1), exit_code=3, message="why")

    (published,) = transitions(at(ACTIVE), report)

    assert published == attrs.evolve(report, time=EPOCH, metadata={"time.source": "previous_state"})


@pytest.mark.clause("state-model", "status-monotonic", "state-order-kept")
@given(st.lists(statuses, max_size=12), times)
def test_any_reports_publish_an_ascending_sequence_with_at_most_one_final(
    reports: list[JobStatus], start: datetime
) -> None:
    history = published(reports, JobStatus(NEW, time=start))

    steps = list(itertools.pairwise(history))
    assert all(later.state.is_greater_than(earlier.state) for earlier, later in steps)
    assert not any(status.final for status in history[:-1])


@given(st.lists(statuses, max_size=12), times)
def test_times_never_decrease(reports: list[JobStatus], start: datetime) -> None:
    history = published(reports, JobStatus(NEW, time=start))

    assert [status.time for status in history] == sorted(status.time for status in history)


@pytest.mark.clause("status-skipped", "callbacks-in-order")
@given(st.lists(statuses, min_size=1, max_size=12), times)
def test_no_state_before_the_last_is_missing(reports: list[JobStatus], start: datetime) -> None:
    """QUEUED is in every history, ACTIVE in every history of a job that ran, and nowhere else invented."""
    history = published(reports, JobStatus(NEW, time=start))

    states = [status.state for status in history]
    assert states == [NEW] or QUEUED in states
    ran = history[-1].state is COMPLETED or history[-1].exit_code is not None
    is_active_reported = any(report.state is ACTIVE for report in reports)
    if history[-1].final:
        assert ACTIVE in states or not ran
        assert ACTIVE not in states or ran or is_active_reported


@given(st.lists(statuses, max_size=12), times, st.randoms(use_true_random=False))
def test_the_highest_report_decides_the_last_state(reports: list[JobStatus], start: datetime, random) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001  hypothesis' own Random
    """In whatever order; only which of several finals wins is the first one's."""
    shuffled = random.sample(reports, len(reports))

    one, other = (published(order, JobStatus(NEW, time=start))[-1].state for order in (reports, shuffled))

    assert one is other or (one.final and other.final)


def test_reports_of_the_same_state_add_their_details() -> None:
    queued = JobStatus(JobState.QUEUED, metadata={"a": 1, "b": 1}, message="waits")

    report = enriched(queued, JobStatus(JobState.QUEUED, metadata={"b": 2}))

    assert (dict(report.metadata), report.message, report.time) == ({"a": 1, "b": 2}, "waits", queued.time)
    assert enriched(report, JobStatus(JobState.QUEUED, message="held")).message == "held"


def test_reports_of_another_or_a_final_state_add_nothing() -> None:
    queued, done = JobStatus(JobState.QUEUED), JobStatus(JobState.COMPLETED)

    assert enriched(queued, JobStatus(JobState.ACTIVE, metadata={"a": 1})) is queued
    assert enriched(done, JobStatus(JobState.COMPLETED, metadata={"a": 1})) is done


def test_jobs_with_the_same_status_and_the_same_report_share_the_result() -> None:
    """Many thousands of jobs may wait in one array."""
    queued = JobStatus(JobState.QUEUED)
    report = JobStatus(JobState.QUEUED, metadata={"acme.state": "PD"})

    assert enriched(queued, report) is enriched(queued, report)
    assert (
        enriched(queued, JobStatus(JobState.QUEUED, metadata={"acme.state": "S"})).metadata["acme.state"]
        == "S"
    )
