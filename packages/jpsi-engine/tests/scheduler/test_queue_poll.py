"""Processes that share ask about as often as one, and no answer tells of a job what it cannot know."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi.contract.observation import Observation
from jpsi.model.errors import SubmitException
from jpsi.model.states import JobState
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.poll_interval import PollInterval
from jpsi_engine.scheduler.queue_poll import QueuePoll, covers_any
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot

SHORTEST = 2.0
LONGEST = 30.0
WAITING = Observation(state=JobState.QUEUED, native_state="WAITING")


@attrs.define(eq=False)
class World:
    """A batch system that forgets no job, and the time; a question takes a while, in which others go on."""

    root: str
    duration: float = 0.0
    lists_all: bool = False
    now: float = 1000.0
    known: set[str] = attrs.field(factory=set)
    processes: list[Process] = attrs.field(factory=list)
    #: When questions were begun, and about which jobs they were.
    questions: list[tuple[float, tuple[str, ...]]] = attrs.field(factory=list)
    #: Ids on which the batch system chokes, or None if it answers nothing.
    chokes_on: set[str] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        Path(self.root).mkdir(exist_ok=True)

    def clock(self) -> float:
        return self.now

    def process(self, jitter: float = 0.0, system: str = "it") -> Process:
        process = Process(self, system, jitter)
        self.processes.append(process)
        return process

    def states(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        self.questions.append((self.now, tuple(native_ids)))
        # what is submitted while the question is under way is not in the answer
        known = set(self.known)
        self.run_until(self.now + self.duration)
        if self.chokes_on & set(native_ids):
            msg = "what is that?"
            raise SubmitException(msg)
        return {native_id: WAITING for native_id in known if self.lists_all or native_id in native_ids}

    def run_until(self, end: float) -> None:
        """Let every process ask when it must."""
        while self.processes:
            due, process = min(((it.next(), it) for it in self.processes), key=lambda it: it[0])
            if due > end:
                break
            self.now = max(self.now, due)
            process.ask()
        self.now = max(self.now, end)

    def gaps(self) -> list[float]:
        """The pauses between questions."""
        times = [begun for begun, _ in self.questions]
        return [later - earlier for earlier, later in itertools.pairwise(times)]


@attrs.define(eq=False)
class Process:
    """Follows jobs as another process would; plays the batch system's client too."""

    world: World
    name: str
    jitter: float
    jobs: list[JobView] = attrs.field(factory=list)
    #: When it last knew more of each job than before.
    told: dict[str, float] = attrs.field(factory=dict)
    capabilities: SimpleNamespace = attrs.field(init=False)
    poll_interval: PollInterval = attrs.field(init=False)
    asking: QueuePoll = attrs.field(init=False)
    is_asking: bool = False
    probes: int = 0

    def __attrs_post_init__(self) -> None:
        self.capabilities = SimpleNamespace(ids_per_query=None if self.world.lists_all else 100)
        self.poll_interval = PollInterval(SHORTEST, LONGEST, lambda: self.jitter)
        self.asking = QueuePoll(cast("Backend", self), SharedPoll(self.world.root), self.poll_interval)

    # What `QueuePoll` wants of a backend.

    def system_digest(self) -> str:
        return self.name

    def probe(self) -> None:
        self.probes += 1

    def query_states(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        return self.world.states(native_ids)

    # What the rounds do.

    def submit(self, native_id: str) -> JobView:
        """Submit a job and follow it."""
        self.world.known.add(native_id)
        return self.follow(native_id)

    def follow(self, native_id: str) -> JobView:
        job = JobView(native_id, native_id, 1, native_id, is_followed=True, since=self.world.now)
        self.jobs.append(job)
        self.poll_interval.request_poll(self.world.now)
        return job

    def next(self) -> float:
        return float("inf") if self.is_asking or not self.jobs else self.poll_interval.next_poll_time()

    def ask(self) -> Snapshot | None:
        return self._hear(lambda jobs: self.asking.poll_when_due(jobs, self.world.clock))

    def info(self, job: JobView) -> Snapshot | None:
        since = min(job.since, self.world.now)
        answer = self._hear(
            lambda jobs: self.asking.poll_now(
                frozenset({job.native_id, *(it.native_id for it in jobs)}),
                lambda answer: (
                    answer.begun >= self.world.now - SHORTEST and answer.covers(job.native_id, since)
                ),
                self.world.clock,
                lambda s: self.world.run_until(self.world.now + s),
            )
        )
        assert answer is None or job.native_id in answer.seen, "a job that is there was called absent"
        return answer

    def _hear(self, question: Callable[[list[JobView]], Snapshot | None]) -> Snapshot | None:
        jobs, self.is_asking = list(self.jobs), True
        try:
            answer = question(jobs)
        except SubmitException:
            return None
        finally:
            self.is_asking = False
        for job in jobs:
            if answer is not None and answer.covers(job.native_id, job.since):
                assert job.native_id in answer.seen, "a job that is there was called absent"
                self.told[job.native_id] = self.world.now
        return answer


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path))


def test_question_is_about_the_jobs_of_all_processes(world: World) -> None:
    first, second = world.process(), world.process()
    first.submit("1")
    second.submit("2")

    world.run_until(world.now + 10 * SHORTEST)

    assert world.questions[-1][1] == ("1", "2")
    assert min(first.probes, second.probes) > 0, "whoever asks, each knows what the site offers"


@pytest.mark.parametrize("lists_all", [False, True], ids=["by id", "all"])
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("duration", [0.0, 0.3])
def test_many_processes_ask_about_as_often_as_one(
    tmp_path: Path, count: int, lists_all: bool, duration: float
) -> None:
    queried = {}
    for processes in (1, count):
        world = World(str(tmp_path / str(processes)), duration=duration, lists_all=lists_all)
        for number in range(processes):
            world.run_until(world.now + 0.4)
            world.process(jitter=number / processes).submit(str(number))
        world.run_until(world.now + 600)
        queried[processes] = len(world.questions)
        assert all(set(it.told) == {job.native_id for job in it.jobs} for it in world.processes)
        assert all(world.now - min(it.told.values()) < 1.2 * LONGEST for it in world.processes)

    assert queried[1] <= queried[count] <= 1.25 * queried[1] + 2


def test_processes_that_keep_submitting_share_the_shortest_interval(world: World) -> None:
    processes = [world.process() for _ in range(8)]
    for number in range(400):
        processes[number % 8].submit(str(number))
        world.run_until(world.now + 0.1)

    assert min(world.gaps()) >= SHORTEST
    assert len(world.questions) <= 400 * 0.1 / SHORTEST + 1


@pytest.mark.parametrize("lists_all", [False, True], ids=["by id", "all"])
def test_answer_from_before_a_submission_tells_nothing_of_it(tmp_path: Path, lists_all: bool) -> None:
    world = World(str(tmp_path), duration=1.0, lists_all=lists_all)
    first, second = world.process(), world.process()
    first.submit("1")
    second.submit("2")
    world.run_until(world.now + SHORTEST + 0.5)
    assert len(world.questions) == 1, "it is under way"

    second.submit("3")
    world.run_until(world.now + 0.6)

    assert "3" not in second.told
    world.run_until(world.now + 3 * SHORTEST)
    assert "3" in second.told


def test_job_that_another_process_has_asked_for_in_vain_is_not_absent_when_it_is_submitted(
    world: World,
) -> None:
    """An id may be asked for before this process follows it: recovered elsewhere, or guessed."""
    first, second = world.process(), world.process()
    first.submit("1")
    world.run_until(world.now + 60)
    answer = Snapshot(
        begun=world.now - 1, ended=world.now, queried=frozenset({"1", "2"}), seen={"1": WAITING}
    )
    first.asking._shared_poll.write_snapshot("it", answer)

    second.submit("2")
    world.run_until(world.now + 10 * SHORTEST)

    assert "2" in second.told


def test_answers_of_another_system_are_nobodys(world: World) -> None:
    here, there = world.process(system="here"), world.process(system="there")
    here.submit("1")
    there.submit("2")

    world.run_until(world.now + 60)

    assert {ids for _, ids in world.questions} == {("1",), ("2",)}
    assert set(here.told) | set(there.told) == {"1", "2"}


def test_id_that_the_system_chokes_on_costs_others_every_second_question_at_most(world: World) -> None:
    bad, good = world.process(), world.process(jitter=0.5)
    world.chokes_on = {"?"}
    bad.submit("?")
    world.run_until(world.now + 60)
    good.submit("1")

    world.run_until(world.now + 10 * LONGEST)

    assert world.now - good.told["1"] < 2.2 * LONGEST


def test_answer_at_once_does_not_fail_by_the_id_of_another_process(world: World) -> None:
    bad, good = world.process(), world.process()
    world.chokes_on = {"?"}
    bad.submit("?")
    world.run_until(world.now + 60)
    job = good.submit("1")

    assert good.info(job) is not None


def test_question_at_once_does_not_change_what_another_thread_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = world.process(), world.process()
    first.submit("1")
    job = second.submit("2")
    for process in (first, second):
        process.info(process.jobs[0])
    world.questions.clear()
    states = World.states

    def meanwhile(world: World, native_ids: Sequence[str]) -> dict[str, Observation]:
        monkeypatch.setattr(World, "states", states)
        second.asking._poll_alternately("it", frozenset({"2"}), world.clock)
        return states(world, native_ids)

    monkeypatch.setattr(World, "states", meanwhile)
    world.now += 2 * SHORTEST
    second.info(job)

    assert [ids for _, ids in world.questions] == [("1", "2")] * 2


def test_process_for_which_the_others_cannot_ask_asks_for_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = world.process(), world.process(jitter=0.5)
    monkeypatch.setattr(second.asking._shared_poll, "announce", lambda *_: None)
    first.submit("1")
    second.submit("2")

    world.run_until(world.now + 10 * LONGEST)

    assert world.now - second.told["2"] < 1.3 * LONGEST


def test_lock_is_not_waited_for_longer_than_the_interval(world: World) -> None:
    process = world.process()
    process.submit("1")
    shared_poll = SharedPoll(world.root)
    shared_poll.announce("it", frozenset(), world.now, 60)
    start = world.now

    with shared_poll.lock_polling() as is_ours:
        assert is_ours
        world.run_until(start + 3 * SHORTEST)

    assert world.questions[0][0] == pytest.approx(start + 2 * SHORTEST)
    assert process.probes == len(world.questions), "while it waits it asks nothing at all"


def test_process_that_waits_for_the_lock_takes_the_answer_of_its_holder(world: World) -> None:
    world.duration = 1.5
    first, second = world.process(), world.process(jitter=0.1)
    first.submit("1")
    world.run_until(world.now + 0.1)
    second.submit("2")
    world.run_until(world.now + 60)
    before = len(world.questions)

    world.run_until(world.now + 3 * LONGEST)

    assert len(world.questions) - before <= 4
    assert world.now - min(first.told["1"], second.told["2"]) < 1.2 * LONGEST


def test_where_nothing_can_be_written_each_asks_for_itself(tmp_path: Path) -> None:
    (tmp_path / "asking").write_text("in the way")
    world = World(str(tmp_path))
    first, second = world.process(), world.process()
    first.submit("1")
    second.submit("2")

    world.run_until(world.now + SHORTEST)

    assert [ids for _, ids in world.questions] == [("1",), ("2",)]
    assert set(first.told) | set(second.told) == {"1", "2"}


def test_question_of_a_process_that_was_killed_is_asked_by_the_next(world: World) -> None:
    first, second = world.process(), world.process()
    first.submit("1")
    second.submit("2")
    world.run_until(world.now + 60)

    world.processes.remove(first)
    world.run_until(world.now + 10 * LONGEST)

    assert world.now - second.told["2"] < 1.2 * LONGEST
    assert world.questions[-1][1] == ("2",), "the other was not heard of for long"


def test_answer_at_once_is_one_question_within_the_shortest_interval(world: World) -> None:
    process, other = world.process(), world.process()
    jobs = [process.submit(str(number)) for number in range(100)]
    other.submit("other")
    world.run_until(world.now + 60)
    before = len(world.questions)

    for job in jobs:
        process.info(job)

    assert len(world.questions) <= before + 1
    assert not {job.native_id for job in jobs} - process.told.keys()


def test_answer_at_once_waits_for_whoever_asks_no_longer_than_the_shortest_interval(world: World) -> None:
    process = world.process()
    job = process.submit("1")
    world.run_until(world.now + 60)
    start, before = world.now, len(world.questions)

    with SharedPoll(world.root).lock_polling():
        world.processes.remove(process)
        answer = process.info(job)

    assert answer is not None
    assert len(world.questions) == before + 1
    assert start + SHORTEST <= world.now <= start + 1.2 * SHORTEST


events = st.lists(
    st.tuples(
        st.floats(0, 1) | st.sampled_from([0.0, 0.5, 2.0, 40.0]),
        st.integers(0, 3),
        st.sampled_from(["submit", "submit", "info", "wait", "recover", "kill"]),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=200)
@given(events, st.floats(0, 5), st.booleans(), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_no_job_that_is_there_is_ever_called_absent(
    script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
) -> None:
    """Whatever asks when, and however long an answer takes; `Process` asserts it for each answer."""
    with played(script, duration, lists_all, jitter) as world:
        for process in world.processes:
            world.duration = 0.0
            world.run_until(world.now + 2.2 * LONGEST)
            assert {job.native_id for job in process.jobs} == process.told.keys()


@settings(deadline=None)
@given(
    events.map(lambda script: [event for event in script if event[2] != "info"]),
    st.floats(0, SHORTEST - 0.3),
    st.booleans(),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_processes_that_share_never_ask_twice_within_the_shortest_interval(
    script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
) -> None:
    with played(script, duration, lists_all, jitter) as world:
        assert all(gap >= SHORTEST - 1e-6 for gap in world.gaps())


# A clock goes on between a question and what happens after it.
_TICK = 1e-6


class played:  # noqa: N801  reads like a function
    """A world in which a script was played."""

    def __init__(
        self, script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
    ) -> None:
        self._stack = ExitStack()
        root = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._world = world = World(root, duration=duration, lists_all=lists_all)
        slots = [world.process(it) for it in jitter]
        for number, (pause, index, action) in enumerate(script):
            world.run_until(world.now + pause)
            world.now += _TICK
            process = slots[index]
            if action == "submit":
                process.submit(str(number))
            elif action == "recover" and world.known:
                process.follow(min(world.known))
            elif action == "info" and process.jobs:
                process.info(process.jobs[0])
            elif action == "kill":
                world.processes.remove(process)
                slots[index] = world.process(jitter[index])

    def __enter__(self) -> World:
        return self._world

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def job(native_id: str, since: float) -> JobView:
    return JobView(native_id, native_id, 1, native_id, is_followed=True, since=since)


def answer(begun: float, *queried: str) -> Snapshot:
    return Snapshot(begun=begun, ended=begun + 1, queried=frozenset(queried), seen={})


def cases() -> Iterator[tuple[Snapshot, list[JobView], bool]]:
    yield answer(5, "1"), [job("1", 5), job("2", 4)], True
    yield answer(5, "1"), [job("1", 6), job("2", 4)], False
    yield attrs.evolve(answer(5), queried=None), [job("1", 5)], True
    yield attrs.evolve(answer(5), queried=None), [job("1", 6)], False


@pytest.mark.parametrize(
    ("given_answer", "jobs", "expected"),
    list(cases()),
    ids=["one", "later one", "all", "all are later"],
)
def test_answer_serves_if_it_is_about_a_job_that_was_followed_by_then(
    given_answer: Snapshot, jobs: list[JobView], expected: bool
) -> None:
    assert covers_any(given_answer, jobs) is expected


def test_answer_tells_of_the_job() -> None:
    assert answer(5, "1").covers("1", 4)
    assert not answer(5, "1").covers("1", 6), "followed later"
    assert not answer(5, "2").covers("1", 4), "of another"
