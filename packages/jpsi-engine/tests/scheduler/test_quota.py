"""The quota of a queue: jobs of all clients count, each once, and the batch system is polled rarely."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.contract.observation import Observation
from jpsi.model.errors import SubmitException
from jpsi.model.states import JobState
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.quota import Grant, Limits, Quota, split_wave
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.submit_queue import QuotaReached
from jpsi_engine.spool.arrays import ArrayMember
from jpsi_testing.fake import FakeClock

WAITS = Observation(state=JobState.QUEUED, native_state="W")
RUNS = Observation(state=JobState.ACTIVE, native_state="R")
SILENCE = SubmitException("no answer")


@attrs.define
class Queue:
    """A batch system, and the programs that submit to it."""

    root: Path
    clock: FakeClock = attrs.field(factory=lambda: FakeClock(1000))
    jobs: dict[str, Observation] = attrs.field(factory=dict)
    queried: int = 0
    is_silent: bool = False

    def query_all(self) -> Mapping[str, Observation]:
        self.queried += 1
        if self.is_silent:
            raise SILENCE
        return dict(self.jobs)

    def program(self, **limits: float) -> Program:
        return Program(self, limits)


class Program:
    def __init__(self, queue: Queue, limits: Mapping[str, float]) -> None:
        self.queue = queue
        self.own: dict[str, JobView] = {}
        backend = SimpleNamespace(name="toy", query_all=queue.query_all, system_digest=lambda: "toy")
        self.quota = Quota(
            cast("Backend", backend),
            Limits(**limits, shortest=2, longest=30),
            lambda: list(self.own.values()),
            SharedPoll(str(queue.root)),
            queue.clock,
        )

    def reserve(self, wanted: int = 1) -> Grant | QuotaReached:
        return self.quota.reserve(wanted)

    def granted(self, wanted: int = 1) -> Grant:
        found = self.reserve(wanted)
        assert isinstance(found, Grant), found
        return found

    def full(self, wanted: int = 1) -> QuotaReached:
        found = self.reserve(wanted)
        assert isinstance(found, QuotaReached), found
        return found

    def submit(self, *names: str, observation: Observation = WAITS, array: str | None = None) -> None:
        grant = self.granted(len(names))
        assert grant.queued == len(names)
        self.follow(*names, array=array)
        for name in names:
            self.quota.note_submitted(self.own[name])
        self.queue.jobs.update(dict.fromkeys(names, observation))
        self.quota.release(grant)

    def follow(self, *names: str, array: str | None = None) -> None:
        for index, name in enumerate(names, 1):
            place = None if array is None else ArrayMember(array, index)
            self.own[name] = JobView(name, name, 1, name, place=place)

    def end(self, *names: str) -> None:
        for name in names:
            del self.own[name], self.queue.jobs[name]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def test_jobs_of_others_are_counted(queue: Queue) -> None:
    queue.jobs = {"1": WAITS, "2": RUNS}

    assert queue.program(queued=5).granted(9).queued == 3


def test_the_quota_is_reached_with_as_many_jobs_in_the_queue(queue: Queue) -> None:
    queue.jobs = {"1": WAITS, "2": RUNS}

    full = queue.program(queued=2).full()

    assert full.reason == ("toy has 2 jobs of yours (max_queued is 2), 2 of which are not of this program")


def test_own_jobs_are_counted_once(queue: Queue) -> None:
    program = queue.program(queued=3)

    program.submit("1", "2")

    grant = program.granted(9)
    assert grant.queued == 1
    program.quota.release(grant)
    queue.clock.advance(5)
    program = queue.program(queued=3)
    program.follow("1", "2")
    assert program.granted(9).queued == 1
    assert queue.queried == 2


def test_a_job_that_the_batch_system_does_not_report_yet_is_counted(queue: Queue) -> None:
    program = queue.program(queued=3)
    program.submit("1", "2")
    queue.jobs.clear()
    queue.clock.advance(5)

    assert program.granted(9).queued == 1


def test_jobs_in_submission_are_counted(queue: Queue) -> None:
    program = queue.program(queued=3)
    grant = program.granted(2)

    assert program.granted(9).queued == 1
    program.quota.release(grant)


@pytest.mark.parametrize("limit", ["queued", "active"])
def test_jobs_that_have_left_their_exit_code_count_while_the_batch_system_may_have_them(
    queue: Queue, limit: str
) -> None:
    program = queue.program(**{limit: 3})
    program.submit("1", "2", observation=RUNS)
    # their program has ended, and the batch system is yet to end them
    program.own.clear()

    grant = program.granted(9)
    assert getattr(grant, limit) == 1
    program.quota.release(grant)
    # a new snapshot has one of them
    queue.clock.advance(5)
    del queue.jobs["1"]
    assert getattr(program.granted(9), limit) == 2


def test_jobs_that_ended_since_they_were_submitted_count_until_the_next_snapshot(queue: Queue) -> None:
    program = queue.program(queued=2)
    program.submit("1", "2")
    program.end("1", "2")

    full = program.full()

    assert full.seconds <= 2
    assert full.reason == "toy has 2 jobs of yours (max_queued is 2), 0 of which are not of this program"
    queue.clock.advance(5)
    assert program.granted(9).queued == 2


def test_own_jobs_that_have_left_their_exit_code_are_not_those_of_other_programs(queue: Queue) -> None:
    program = queue.program(queued=3)
    program.submit("1", "2", observation=RUNS)
    queue.jobs["3"] = RUNS
    queue.clock.advance(5)
    program.full()
    # their program has ended since that answer had them
    program.own.clear()

    assert program.full().reason == (
        "toy has 3 jobs of yours (max_queued is 3), 1 of which are not of this program"
    )
    queue.clock.advance(5)
    del queue.jobs["1"]
    assert program.granted(9).queued == 1


def test_own_jobs_in_submission_are_not_those_of_other_programs(queue: Queue) -> None:
    program = queue.program(queued=1)
    program.granted()

    assert program.full().reason == (
        "toy has 1 jobs of yours (max_queued is 1), 0 of which are not of this program"
    )


def test_failed_submissions_are_not_counted(queue: Queue) -> None:
    program = queue.program(queued=3)
    program.quota.release(program.granted(3))

    assert program.granted(9).queued == 3


def test_programs_count_what_the_others_are_submitting(queue: Queue) -> None:
    first, second = queue.program(queued=3), queue.program(queued=3)
    grant = first.granted(2)

    assert second.granted(9).queued == 1
    first.quota.release(grant)
    # it is not in the snapshot that both have
    assert second.full().seconds <= 2
    assert queue.queried == 1


def test_submitted_jobs_of_others_are_finally_counted_by_the_snapshot(queue: Queue) -> None:
    first, second = queue.program(queued=3), queue.program(queued=3)
    first.submit("1", "2")
    first.end("1", "2")
    queue.clock.advance(5)

    assert second.granted(9).queued == 3


def test_submissions_of_a_killed_program_are_counted_only_for_a_while(queue: Queue) -> None:
    queue.program(queued=3).granted(2)

    second = queue.program(queued=3)
    second.quota.release(second.granted(3))
    queue.clock.advance(500)
    assert second.granted(3).queued == 1
    queue.clock.advance(200)
    assert queue.program(queued=3).granted(3).queued == 2


def test_the_batch_system_is_polled_once_per_interval(queue: Queue) -> None:
    program = queue.program(queued=1000)
    for number in range(40):
        program.submit(str(number))
        queue.clock.advance(0.1)

    assert queue.queried == 2


def test_polls_back_off_while_the_quota_is_reached(queue: Queue) -> None:
    queue.jobs = {"1": WAITS}
    program = queue.program(queued=1)
    times = []
    for _ in range(3000):
        before = queue.queried
        seconds = program.full().seconds
        times += [queue.clock()] if queue.queried > before else []
        assert 0 < seconds <= 2
        queue.clock.advance(seconds)

    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 4
    assert pauses[-1] == pytest.approx(30)


def test_a_poll_is_due_soon_after_an_own_job_ended(queue: Queue) -> None:
    program = queue.program(queued=2)
    program.submit("1", "2")
    for _ in range(50):
        queue.clock.advance(program.full().seconds)
    queried = queue.queried

    program.end("1")
    while isinstance(found := program.reserve(), QuotaReached):
        queue.clock.advance(found.seconds)

    assert queue.queried == queried + 1
    assert queue.clock() < 1000 + 110


def test_a_poll_is_due_soon_after_jobs_ended_that_no_submission_saw(queue: Queue) -> None:
    """Another thread's submissions have made the pause long while they were submitted."""
    program = queue.program(queued=2)
    grant = program.granted(2)
    for _ in range(50):
        queue.clock.advance(program.full().seconds)
    program.follow("1", "2")
    for job in program.own.values():
        program.quota.note_submitted(job)
    program.own.clear()
    program.quota.release(grant)

    assert program.full().seconds <= 2
    queue.clock.advance(2)
    assert program.granted(9).queued == 2


def test_an_outage_is_reported(queue: Queue) -> None:
    queue.is_silent = True

    with pytest.raises(SubmitException, match="no answer"):
        queue.program(queued=1).reserve(1)


def test_an_old_snapshot_serves_though_nothing_can_be_shared(queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "shared_poll").touch()
    program = queue.program(queued=3)

    program.submit("1")
    program.submit("2")

    assert program.granted(9).queued == 1
    assert queue.queried == 1


# ------------------------------------------------------------------------------------ jobs that run


def test_jobs_of_others_count_once_they_run(queue: Queue) -> None:
    queue.jobs = {"1": WAITS, "2": RUNS}

    grant = queue.program(active=5).granted(9)

    assert (grant.queued, grant.active) == (9, 4)


def test_own_jobs_count_though_they_wait(queue: Queue) -> None:
    program = queue.program(active=2)
    program.submit("1", "2")

    full = program.full()

    assert full.reason == "2 jobs of yours run on toy, or may (max_active is 2)"


def test_own_jobs_that_run_count_once(queue: Queue) -> None:
    program = queue.program(active=3)
    program.submit("1", observation=RUNS)
    queue.clock.advance(5)

    assert program.granted(9).active == 2


def test_files_of_other_programs_are_skipped(queue: Queue) -> None:
    other = SharedPoll(str(queue.root))
    other.announce("toy", frozenset({"strange", "a/b/c", "a/1"}), queue.clock(), 600)

    assert queue.program(queued=3).granted(9).queued == 3


def test_an_array_counts_as_its_elements_that_may_run(queue: Queue) -> None:
    program = queue.program(active=5)
    grant = program.granted(9)
    program.follow(*"abcdefgh", array="A")
    program.quota.limit_array("A", 3)
    program.quota.release(grant)

    assert program.granted(9).active == 2
    for name in "abcdefg":
        del program.own[name]
    queue.clock.advance(5)
    assert program.granted(2).active == 2


@pytest.mark.parametrize("seconds", [0, 5])
def test_elements_that_have_left_their_exit_code_count_as_their_array(queue: Queue, seconds: float) -> None:
    program = queue.program(active=5)
    program.submit(*"abcde", array="A", observation=RUNS)
    program.quota.limit_array("A", 3)
    queue.clock.advance(seconds)
    program.quota.release(program.granted(9))
    for name in "abcd":
        del program.own[name]

    assert program.granted(9).active == 2


def test_jobs_in_submission_count_as_running(queue: Queue) -> None:
    program = queue.program(active=5)
    program.granted(3)

    assert program.granted(9).active == 2


# ------------------------------------------------------------------------------------------ waves

parts = st.lists(st.lists(st.integers(), min_size=1, max_size=6), max_size=6)
grants = st.builds(
    Grant,
    st.integers(1, 20) | st.just(float("inf")),
    st.integers(1, 20) | st.just(float("inf")),
)


@given(parts, grants, st.booleans())
def test_a_wave_stays_within_its_grant_and_loses_no_job(
    parts: list[list[int]], grant: Grant, can_limit: Any
) -> None:
    now, later = split_wave(parts, grant, can_limit=can_limit)

    assert sorted(job for part in (*(it for it, _ in now), *later) for job in part) == sorted(
        job for part in parts for job in part
    )
    assert all(now_part for now_part, _ in now)
    assert sum(len(part) for part, _ in now) <= grant.queued
    assert sum(at or len(part) for part, at in now) <= grant.active
    assert all(at is None or (can_limit and 0 < at < len(part)) for part, at in now)
    assert bool(now) == bool(parts)
