"""The owner of a native id: whether an observation is about the own job or another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from jpsi.plugin import JobState, Observation
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.spool.arrays import ArrayMember
from jpsi_engine.verdict.job_identity import Owner, is_own, is_refused, owner_of
from jpsi_engine.verdict.markers import Marker, parse

TAG = "jpsi-a1-1"
THEN = datetime(2026, 1, 1, tzinfo=UTC)
LATER = THEN + timedelta(minutes=1)


def reported(
    tag: str | None = None, submitted: datetime | None = None, state: JobState | None = JobState.COMPLETED
) -> Observation:
    return Observation(state=state, native_state="WORD", tag=tag, submitted=submitted)


@pytest.mark.parametrize(
    ("observation", "submitted", "is_requeued", "expected"),
    [
        pytest.param(reported(TAG), None, False, Owner.OWN, id="its tag"),
        pytest.param(reported(TAG, LATER), THEN, False, Owner.OWN, id="its tag, whatever the time"),
        pytest.param(reported(""), None, False, Owner.FOREIGN, id="no tag"),
        pytest.param(reported("jpsi-b2-1"), None, False, Owner.FOREIGN, id="another's tag"),
        pytest.param(reported("jpsi-a1-2"), None, False, Owner.FOREIGN, id="the tag of another attempt"),
        pytest.param(
            reported("jpsi-b2-1", THEN), THEN, False, Owner.FOREIGN, id="another's tag, at its time"
        ),
        pytest.param(reported("", THEN), THEN, False, Owner.FOREIGN, id="no tag, at its time"),
        pytest.param(reported("", LATER), THEN, False, Owner.FOREIGN, id="no tag, later"),
        pytest.param(reported(None, THEN), THEN, False, Owner.OWN, id="its time"),
        pytest.param(
            reported(None, THEN + timedelta(seconds=1)),
            THEN,
            False,
            Owner.OWN,
            id="its time, but for rounding",
        ),
        pytest.param(reported(None, LATER), THEN, False, Owner.FOREIGN, id="later"),
        pytest.param(reported(None, LATER), THEN, True, Owner.UNKNOWN, id="later, after a requeue"),
        pytest.param(reported("", LATER), THEN, True, Owner.UNKNOWN, id="no tag, later, after a requeue"),
        pytest.param(reported(""), THEN, True, Owner.FOREIGN, id="no tag and no time, after a requeue"),
        pytest.param(reported(None, THEN), None, False, Owner.UNKNOWN, id="a time alone"),
        pytest.param(reported(None), THEN, False, Owner.UNKNOWN, id="nothing"),
    ],
)
def test_owner(
    observation: Observation, submitted: datetime | None, is_requeued: bool, expected: Owner
) -> None:
    assert owner_of(observation, TAG, submitted, is_requeued=is_requeued) is expected


@pytest.mark.parametrize(
    ("state", "is_requeued", "expected"),
    [
        (JobState.ACTIVE, False, Owner.UNKNOWN),
        (JobState.COMPLETED, False, Owner.UNKNOWN),
        (JobState.QUEUED, True, Owner.UNKNOWN),
        # it has begun, and does not wait again
        (JobState.QUEUED, False, Owner.FOREIGN),
    ],
)
def test_a_job_that_has_run_may_be_the_own_one_though_its_tag_was_removed(
    state: JobState, is_requeued: bool, expected: Owner
) -> None:
    found = [
        owner_of(reported("", submitted, state), TAG, THEN, began=LATER, is_requeued=is_requeued)
        for submitted in (THEN, LATER)
    ]

    assert found == [expected, Owner.UNKNOWN if is_requeued else Owner.FOREIGN]


@pytest.mark.parametrize(
    ("began_after", "is_requeued", "expected"),
    [
        (0, False, Owner.UNKNOWN),
        (1, False, Owner.UNKNOWN),
        (2, False, Owner.FOREIGN),
        (2, True, Owner.UNKNOWN),
    ],
)
def test_job_without_a_tag_that_began_later_is_foreign(
    began_after: int, is_requeued: bool, expected: Owner
) -> None:
    observed = attrs.evolve(reported("", THEN, JobState.ACTIVE), time=THEN + timedelta(seconds=began_after))

    assert owner_of(observed, TAG, began=THEN, is_requeued=is_requeued) is expected


@pytest.mark.parametrize(
    ("observation", "is_requeued", "expected"),
    [
        pytest.param(reported("", THEN), False, Owner.UNKNOWN, id="taken before it began"),
        pytest.param(reported("", LATER), False, Owner.FOREIGN, id="taken after it had begun"),
        pytest.param(reported("", LATER), True, Owner.UNKNOWN, id="taken after it had begun, and put back"),
        pytest.param(reported(""), False, Owner.FOREIGN, id="no time"),
        pytest.param(reported(None, THEN), False, Owner.UNKNOWN, id="tag not reported"),
        pytest.param(reported("jpsi-b2-1", THEN), False, Owner.FOREIGN, id="another's tag"),
    ],
)
def test_a_process_that_never_observed_the_tag_uses_the_markers_of_the_job(
    observation: Observation, is_requeued: bool, expected: Owner
) -> None:
    """After `recover` this is so if the tag was removed before."""
    began = THEN + timedelta(seconds=5)

    assert owner_of(observation, TAG, None, began=began, is_requeued=is_requeued) is expected


@pytest.mark.parametrize(
    ("tag", "owner", "expected"),
    [
        (TAG, Owner.OWN, False),
        (None, Owner.OWN, False),
        (None, Owner.UNKNOWN, False),
        ("", Owner.UNKNOWN, True),
        ("", Owner.FOREIGN, True),
        (None, Owner.FOREIGN, True),
    ],
)
def test_a_request_to_a_job_that_may_be_another_users_is_refused(
    tag: str | None, owner: Owner, expected: bool
) -> None:
    assert is_refused(reported(tag), owner) is expected


def test_every_observation_of_a_foreign_job_counts() -> None:
    assert owner_of(reported("jpsi-b2-1"), None) is Owner.OWN


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (None, False),
        (Observation.denied("no such job"), False),
        (reported(""), False),
        (reported(None), True),
    ],
    ids=["not mentioned", "denied", "a foreign job's", "it does not say"],
)
def test_observations_that_may_be_about_the_own_job(observation: Observation | None, expected: bool) -> None:
    assert is_own(observation, TAG) is expected


def test_end_without_a_tag_counts_only_if_the_job_has_left_a_marker() -> None:
    unmarked, marked = (JobView("a1", "a1", 1, "17") for _ in range(2))
    marked.markers = [_active()]

    for job in (unmarked, marked):
        job.observe(reported(None), 1.0)

    assert (unmarked.queued, unmarked.absences) == (None, 1)
    assert (marked.queued, marked.absences) == (reported(None), 0)


def test_without_the_tag_an_end_is_ignored_and_a_running_state_counts() -> None:
    """Another job may have got the native id in the second in which the job was submitted and began."""
    job = JobView("a1", "a1", 1, "17")
    job.observe(reported(TAG, THEN, JobState.ACTIVE), 1.0)
    job.markers = [_active()]

    job.observe(reported("", THEN, JobState.CANCELED), 2.0)
    assert job.absences == 1
    job.observe(reported("", THEN, JobState.ACTIVE), 3.0)
    assert (job.absences, job.queued) == (0, reported("", THEN, JobState.ACTIVE))

    job.markers.append(_marker("exit.run.143"))
    job.observe(reported("", THEN, JobState.ACTIVE), 4.0)

    assert job.absences == 1, "it has ended, and so it is another one that runs"


def test_a_queued_job_is_reported_without_a_tag() -> None:
    """Plugins without tags do so: a queued state is no end, and a wrong one shows when the job ends."""
    job = JobView("a1", "a1", 1, "17")

    job.observe(reported(None, state=JobState.QUEUED), 1.0)

    assert job.queued is not None


def test_the_time_of_an_observation_with_the_tag_identifies_later_ones() -> None:
    job = JobView("a1", "a1", 1, "17")
    job.observe(reported(TAG, THEN, JobState.QUEUED), 1.0)

    job.observe(None, 2.0)
    job.apply_accounting({"17": reported(None, LATER)}, 2.0)
    assert (job.accounted, job.foreign_job) == (None, reported(None, LATER))


def test_accounting_at_the_time_of_a_tagged_observation_counts_unless_another_job_has_the_id() -> None:
    job = JobView("a1", "a1", 1, "17")
    job.observe(reported(TAG, THEN, JobState.QUEUED), 1.0)
    job.observe(None, 2.0)

    job.apply_accounting({"17": reported(None, THEN)}, 3.0)
    assert job.accounted == reported(None, THEN)
    job.observe(reported("jpsi-b2-1"), 4.0)
    job.apply_accounting({"17": reported(None, THEN)}, 5.0)
    assert job.accounted is None


def test_the_accounting_record_of_an_older_job_with_the_native_id_is_ignored() -> None:
    """Controllers reuse ids after a wraparound: an old record proves nothing about a later job."""
    job = JobView("a1", "a1", 1, "17")
    job.observe(reported(TAG, LATER, JobState.QUEUED), 1.0)
    job.observe(None, 2.0)

    job.apply_accounting({"17": reported("jpsi-b2-1", THEN)}, 2.0)

    assert (job.accounted, job.foreign_job, job.is_unaccounted) == (None, None, True)


def test_an_element_has_the_tag_of_its_array() -> None:

    assert JobView("a1", "a1", 1, "17_3", place=ArrayMember("x9", 3)).tag == "jpsi-x9-1"


def _active() -> Marker:
    return _marker("active")


def _marker(name: str) -> Marker:
    marker = parse(f"a1.1.{name}", int(THEN.timestamp() * 1e9))
    assert marker is not None
    return marker
