"""Whose job an answer is about, and what follows from that."""

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


def told(
    tag: str | None = None, submitted: datetime | None = None, state: JobState | None = JobState.COMPLETED
) -> Observation:
    return Observation(state=state, native_state="WORD", tag=tag, submitted=submitted)


@pytest.mark.parametrize(
    ("observation", "submitted", "is_requeued", "expected"),
    [
        pytest.param(told(TAG), None, False, Owner.OWN, id="its tag"),
        pytest.param(told(TAG, LATER), THEN, False, Owner.OWN, id="its tag, whatever the time"),
        pytest.param(told(""), None, False, Owner.STRANGER, id="no tag"),
        pytest.param(told("jpsi-b2-1"), None, False, Owner.STRANGER, id="another's tag"),
        pytest.param(told("jpsi-a1-2"), None, False, Owner.STRANGER, id="the tag of another attempt"),
        pytest.param(told("jpsi-b2-1", THEN), THEN, False, Owner.STRANGER, id="another's tag, at its time"),
        pytest.param(told("", THEN), THEN, False, Owner.STRANGER, id="no tag, at its time"),
        pytest.param(told("", LATER), THEN, False, Owner.STRANGER, id="no tag, later"),
        pytest.param(told(None, THEN), THEN, False, Owner.OWN, id="its time"),
        pytest.param(
            told(None, THEN + timedelta(seconds=1)), THEN, False, Owner.OWN, id="its time, but for rounding"
        ),
        pytest.param(told(None, LATER), THEN, False, Owner.STRANGER, id="later"),
        pytest.param(told(None, LATER), THEN, True, Owner.UNKNOWN, id="later, after a requeue"),
        pytest.param(told("", LATER), THEN, True, Owner.UNKNOWN, id="no tag, later, after a requeue"),
        pytest.param(told(""), THEN, True, Owner.STRANGER, id="no tag and no time, after a requeue"),
        pytest.param(told(None, THEN), None, False, Owner.UNKNOWN, id="a time alone"),
        pytest.param(told(None), THEN, False, Owner.UNKNOWN, id="nothing"),
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
        (JobState.QUEUED, False, Owner.STRANGER),
    ],
)
def test_job_that_has_run_may_be_itself_though_its_tag_was_taken_away(
    state: JobState, is_requeued: bool, expected: Owner
) -> None:
    found = [
        owner_of(told("", told_at, state), TAG, THEN, began=LATER, is_requeued=is_requeued)
        for told_at in (THEN, LATER)
    ]

    assert found == [expected, Owner.UNKNOWN if is_requeued else Owner.STRANGER]


@pytest.mark.parametrize(
    ("began_after", "is_requeued", "expected"),
    [
        (0, False, Owner.UNKNOWN),
        (1, False, Owner.UNKNOWN),
        (2, False, Owner.STRANGER),
        (2, True, Owner.UNKNOWN),
    ],
)
def test_job_without_a_tag_that_began_later_is_a_stranger(
    began_after: int, is_requeued: bool, expected: Owner
) -> None:
    seen = attrs.evolve(told("", THEN, JobState.ACTIVE), time=THEN + timedelta(seconds=began_after))

    assert owner_of(seen, TAG, began=THEN, is_requeued=is_requeued) is expected


@pytest.mark.parametrize(
    ("observation", "is_requeued", "expected"),
    [
        pytest.param(told("", THEN), False, Owner.UNKNOWN, id="taken before it began"),
        pytest.param(told("", LATER), False, Owner.STRANGER, id="taken after it had begun"),
        pytest.param(told("", LATER), True, Owner.UNKNOWN, id="taken after it had begun, and put back"),
        pytest.param(told(""), False, Owner.STRANGER, id="no time"),
        pytest.param(told(None, THEN), False, Owner.UNKNOWN, id="no word of a tag"),
        pytest.param(told("jpsi-b2-1", THEN), False, Owner.STRANGER, id="another's tag"),
    ],
)
def test_process_that_never_saw_the_tag_goes_by_what_the_job_has_left(
    observation: Observation, is_requeued: bool, expected: Owner
) -> None:
    """As after `recover`, where the tag was taken away before."""
    began = THEN + timedelta(seconds=5)

    assert owner_of(observation, TAG, None, began=began, is_requeued=is_requeued) is expected


@pytest.mark.parametrize(
    ("tag", "owner", "expected"),
    [
        (TAG, Owner.OWN, False),
        (None, Owner.OWN, False),
        (None, Owner.UNKNOWN, False),
        ("", Owner.UNKNOWN, True),
        ("", Owner.STRANGER, True),
        (None, Owner.STRANGER, True),
    ],
)
def test_what_is_asked_of_a_job_that_may_be_a_strangers_is_refused(
    tag: str | None, owner: Owner, expected: bool
) -> None:
    assert is_refused(told(tag), owner) is expected


def test_every_answer_about_a_job_that_is_none_of_jpsis_is_believed() -> None:
    assert owner_of(told("jpsi-b2-1"), None) is Owner.OWN


@pytest.mark.parametrize(
    ("observation", "expected"),
    [(None, False), (Observation.denied("no such job"), False), (told(""), False), (told(None), True)],
    ids=["not mentioned", "denied", "a stranger's", "it does not say"],
)
def test_what_may_be_about_a_job(observation: Observation | None, expected: bool) -> None:
    assert is_own(observation, TAG) is expected


def test_end_without_a_tag_counts_only_if_the_job_has_left_a_marker() -> None:
    unmarked, marked = (JobView("a1", "a1", 1, "17") for _ in range(2))
    marked.markers = [_active()]

    for job in (unmarked, marked):
        job.observe(told(None), 1.0)

    assert (unmarked.queued, unmarked.absences) == (None, 1)
    assert (marked.queued, marked.absences) == (told(None), 0)


def test_end_of_what_is_shown_without_the_tag_is_not_believed_and_its_life_is() -> None:
    """A stranger may have got the native id in the second in which the job was submitted and began."""
    job = JobView("a1", "a1", 1, "17")
    job.observe(told(TAG, THEN, JobState.ACTIVE), 1.0)
    job.markers = [_active()]

    job.observe(told("", THEN, JobState.CANCELED), 2.0)
    assert job.absences == 1
    job.observe(told("", THEN, JobState.ACTIVE), 3.0)
    assert (job.absences, job.queued) == (0, told("", THEN, JobState.ACTIVE))

    job.markers.append(_marker("exit.run.143"))
    job.observe(told("", THEN, JobState.ACTIVE), 4.0)

    assert job.absences == 1, "it has ended, and so it is another one that runs"


def test_job_that_waits_is_told_of_without_a_tag() -> None:
    """As by plugins that know no tags: that is no end, and is seen to be wrong when it ends."""
    job = JobView("a1", "a1", 1, "17")

    job.observe(told(None, state=JobState.QUEUED), 1.0)

    assert job.queued is not None


def test_time_of_an_answer_with_the_tag_tells_later_ones_apart() -> None:
    job = JobView("a1", "a1", 1, "17")
    job.observe(told(TAG, THEN, JobState.QUEUED), 1.0)

    job.observe(None, 2.0)
    job.apply_accounting({"17": told(None, LATER)}, 2.0)
    assert (job.accounted, job.stranger) == (None, told(None, LATER))


def test_account_of_the_time_of_an_answer_with_the_tag_counts_unless_another_job_has_the_id() -> None:
    job = JobView("a1", "a1", 1, "17")
    job.observe(told(TAG, THEN, JobState.QUEUED), 1.0)
    job.observe(None, 2.0)

    job.apply_accounting({"17": told(None, THEN)}, 3.0)
    assert job.accounted == told(None, THEN)
    job.observe(told("jpsi-b2-1"), 4.0)
    job.apply_accounting({"17": told(None, THEN)}, 5.0)
    assert job.accounted is None


def test_account_of_an_older_job_of_the_native_id_says_nothing() -> None:
    """Controllers begin anew when they have used all their ids: that tells nothing of what came later."""
    job = JobView("a1", "a1", 1, "17")
    job.observe(told(TAG, LATER, JobState.QUEUED), 1.0)
    job.observe(None, 2.0)

    job.apply_accounting({"17": told("jpsi-b2-1", THEN)}, 2.0)

    assert (job.accounted, job.stranger, job.is_unaccounted) == (None, None, True)


def test_element_carries_the_tag_of_its_array() -> None:

    assert JobView("a1", "a1", 1, "17_3", place=ArrayMember("x9", 3)).tag == "jpsi-x9-1"


def _active() -> Marker:
    return _marker("active")


def _marker(name: str) -> Marker:
    marker = parse(f"a1.1.{name}", int(THEN.timestamp() * 1e9))
    assert marker is not None
    return marker
