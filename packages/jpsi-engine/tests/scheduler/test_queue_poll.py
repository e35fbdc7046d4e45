"""Processes that share polls poll about as often as one; a snapshot decides only about jobs it covers."""

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
class Simulation:
    """A batch system that forgets no job, and a clock; other processes go on during a query."""

    root: str
    duration: float = 0.0
    lists_all: bool = False
    now: float = 1000.0
    known: set[str] = attrs.field(factory=set)
    processes: list[Process] = attrs.field(factory=list)
    #: The start and the native ids of each query.
    queries: list[tuple[float, tuple[str, ...]]] = attrs.field(factory=list)
    #: Native ids with which a query fails.
    failing_ids: set[str] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        Path(self.root).mkdir(exist_ok=True)

    def clock(self) -> float:
        return self.now

    def process(self, jitter: float = 0.0, system: str = "it") -> Process:
        process = Process(self, system, jitter)
        self.processes.append(process)
        return process

    def states(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        self.queries.append((self.now, tuple(native_ids)))
        # the result does not have jobs that are submitted during the query
        known = set(self.known)
        self.run_until(self.now + self.duration)
        if self.failing_ids & set(native_ids):
            msg = "what is that?"
            raise SubmitException(msg)
        return {native_id: WAITING for native_id in known if self.lists_all or native_id in native_ids}

    def run_until(self, end: float) -> None:
        """Let every process poll when a poll is due."""
        while self.processes:
            due, process = min(((it.next(), it) for it in self.processes), key=lambda it: it[0])
            if due > end:
                break
            self.now = max(self.now, due)
            process.poll()
        self.now = max(self.now, end)

    def gaps(self) -> list[float]:
        """Return the pauses between queries."""
        times = [begun for begun, _ in self.queries]
        return [later - earlier for earlier, later in itertools.pairwise(times)]


@attrs.define(eq=False)
class Process:
    """One process that follows jobs; it is also its own fake `Backend`."""

    simulation: Simulation
    name: str
    jitter: float
    jobs: list[JobView] = attrs.field(factory=list)
    #: The time of the last snapshot that covered each job.
    covered: dict[str, float] = attrs.field(factory=dict)
    capabilities: SimpleNamespace = attrs.field(init=False)
    poll_interval: PollInterval = attrs.field(init=False)
    queue_poll: QueuePoll = attrs.field(init=False)
    is_polling: bool = False
    probes: int = 0

    def __attrs_post_init__(self) -> None:
        self.capabilities = SimpleNamespace(ids_per_query=None if self.simulation.lists_all else 100)
        self.poll_interval = PollInterval(SHORTEST, LONGEST, 10 * LONGEST, lambda: self.jitter)
        self.queue_poll = QueuePoll(
            cast("Backend", self), SharedPoll(self.simulation.root), self.poll_interval
        )

    # The methods of `Backend` that `QueuePoll` calls.

    def system_digest(self) -> str:
        return self.name

    def probe(self) -> None:
        self.probes += 1

    def query_states(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        return self.simulation.states(native_ids)

    # The methods that rounds and tests call.

    def submit(self, native_id: str) -> JobView:
        """Submit a job and follow it."""
        self.simulation.known.add(native_id)
        return self.follow(native_id)

    def follow(self, native_id: str) -> JobView:
        job = JobView(native_id, native_id, 1, native_id, is_followed=True, since=self.simulation.now)
        self.jobs.append(job)
        self.poll_interval.request_poll(self.simulation.now)
        return job

    def next(self) -> float:
        return float("inf") if self.is_polling or not self.jobs else self.poll_interval.next_poll_time()

    def poll(self) -> Snapshot | None:
        return self._run_poll(lambda jobs: self.queue_poll.poll_when_due(jobs, self.simulation.clock))

    def info(self, job: JobView) -> Snapshot | None:
        since = min(job.since, self.simulation.now)
        snapshot = self._run_poll(
            lambda jobs: self.queue_poll.poll_now(
                frozenset({job.native_id, *(it.native_id for it in jobs)}),
                lambda snapshot: (
                    snapshot.begun >= self.simulation.now - SHORTEST and snapshot.covers(job.native_id, since)
                ),
                self.simulation.clock,
                lambda s: self.simulation.run_until(self.simulation.now + s),
            )
        )
        assert snapshot is None or job.native_id in snapshot.seen, "an existing job was absent"
        return snapshot

    def _run_poll(self, query: Callable[[list[JobView]], Snapshot | None]) -> Snapshot | None:
        jobs, self.is_polling = list(self.jobs), True
        try:
            snapshot = query(jobs)
        except SubmitException:
            return None
        finally:
            self.is_polling = False
        for job in jobs:
            if snapshot is not None and snapshot.covers(job.native_id, job.since):
                assert job.native_id in snapshot.seen, "an existing job was absent"
                self.covered[job.native_id] = self.simulation.now
        return snapshot


@pytest.fixture
def simulation(tmp_path: Path) -> Simulation:
    return Simulation(str(tmp_path))


def test_a_poll_is_about_the_jobs_of_all_processes(simulation: Simulation) -> None:
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    second.submit("2")

    simulation.run_until(simulation.now + 10 * SHORTEST)

    assert simulation.queries[-1][1] == ("1", "2")
    assert min(first.probes, second.probes) > 0, "each process probes the site, whichever polls"


@pytest.mark.parametrize("lists_all", [False, True], ids=["by id", "all"])
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("duration", [0.0, 0.3])
def test_many_processes_poll_about_as_often_as_one(
    tmp_path: Path, count: int, lists_all: bool, duration: float
) -> None:
    queried = {}
    for processes in (1, count):
        simulation = Simulation(str(tmp_path / str(processes)), duration=duration, lists_all=lists_all)
        for number in range(processes):
            simulation.run_until(simulation.now + 0.4)
            simulation.process(jitter=number / processes).submit(str(number))
        simulation.run_until(simulation.now + 600)
        queried[processes] = len(simulation.queries)
        assert all(set(it.covered) == {job.native_id for job in it.jobs} for it in simulation.processes)
        assert all(simulation.now - min(it.covered.values()) < 1.2 * LONGEST for it in simulation.processes)

    assert queried[1] <= queried[count] <= 1.25 * queried[1] + 2


def test_processes_that_keep_submitting_share_the_shortest_interval(simulation: Simulation) -> None:
    processes = [simulation.process() for _ in range(8)]
    for number in range(400):
        processes[number % 8].submit(str(number))
        simulation.run_until(simulation.now + 0.1)

    assert min(simulation.gaps()) >= SHORTEST
    assert len(simulation.queries) <= 400 * 0.1 / SHORTEST + 1


@pytest.mark.parametrize("lists_all", [False, True], ids=["by id", "all"])
def test_a_snapshot_from_before_a_submission_does_not_cover_it(tmp_path: Path, lists_all: bool) -> None:
    simulation = Simulation(str(tmp_path), duration=1.0, lists_all=lists_all)
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    second.submit("2")
    simulation.run_until(simulation.now + SHORTEST + 0.5)
    assert len(simulation.queries) == 1, "the query is running"

    second.submit("3")
    simulation.run_until(simulation.now + 0.6)

    assert "3" not in second.covered
    simulation.run_until(simulation.now + 3 * SHORTEST)
    assert "3" in second.covered


def test_a_job_that_another_process_queried_before_its_submission_is_not_absent(
    simulation: Simulation,
) -> None:
    """A process may query an id before another follows it: it recovered the job, or guessed the id."""
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    simulation.run_until(simulation.now + 60)
    snapshot = Snapshot(
        begun=simulation.now - 1, ended=simulation.now, queried=frozenset({"1", "2"}), seen={"1": WAITING}
    )
    first.queue_poll._shared_poll.write_snapshot("it", snapshot)

    second.submit("2")
    simulation.run_until(simulation.now + 10 * SHORTEST)

    assert "2" in second.covered


def test_snapshots_of_another_system_are_not_used(simulation: Simulation) -> None:
    here, there = simulation.process(system="here"), simulation.process(system="there")
    here.submit("1")
    there.submit("2")

    simulation.run_until(simulation.now + 60)

    assert {ids for _, ids in simulation.queries} == {("1",), ("2",)}
    assert set(here.covered) | set(there.covered) == {"1", "2"}


def test_an_id_that_fails_queries_costs_other_processes_at_most_every_second_poll(
    simulation: Simulation,
) -> None:
    bad, good = simulation.process(), simulation.process(jitter=0.5)
    simulation.failing_ids = {"?"}
    bad.submit("?")
    simulation.run_until(simulation.now + 60)
    good.submit("1")

    simulation.run_until(simulation.now + 10 * LONGEST)

    assert simulation.now - good.covered["1"] < 2.2 * LONGEST


def test_an_immediate_poll_does_not_fail_because_of_the_id_of_another_process(simulation: Simulation) -> None:
    bad, good = simulation.process(), simulation.process()
    simulation.failing_ids = {"?"}
    bad.submit("?")
    simulation.run_until(simulation.now + 60)
    job = good.submit("1")

    assert good.info(job) is not None


def test_an_immediate_poll_does_not_change_the_poll_of_another_thread(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    job = second.submit("2")
    for process in (first, second):
        process.info(process.jobs[0])
    simulation.queries.clear()
    states = Simulation.states

    def meanwhile(simulation: Simulation, native_ids: Sequence[str]) -> dict[str, Observation]:
        monkeypatch.setattr(Simulation, "states", states)
        second.queue_poll._poll_alternately("it", frozenset({"2"}), simulation.clock)
        return states(simulation, native_ids)

    monkeypatch.setattr(Simulation, "states", meanwhile)
    simulation.now += 2 * SHORTEST
    second.info(job)

    assert [ids for _, ids in simulation.queries] == [("1", "2")] * 2


def test_a_process_that_cannot_announce_its_jobs_polls_alone(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = simulation.process(), simulation.process(jitter=0.5)
    monkeypatch.setattr(second.queue_poll._shared_poll, "announce", lambda *_: None)
    first.submit("1")
    second.submit("2")

    simulation.run_until(simulation.now + 10 * LONGEST)

    assert simulation.now - second.covered["2"] < 1.3 * LONGEST


def test_a_process_waits_for_the_lock_at_most_one_interval(simulation: Simulation) -> None:
    process = simulation.process()
    process.submit("1")
    shared_poll = SharedPoll(simulation.root)
    shared_poll.announce("it", frozenset(), simulation.now, 60)
    start = simulation.now

    with shared_poll.lock_polling() as is_ours:
        assert is_ours
        simulation.run_until(start + 3 * SHORTEST)

    assert simulation.queries[0][0] == pytest.approx(start + 2 * SHORTEST)
    assert process.probes == len(simulation.queries), "it runs no command while it waits"


def test_a_process_that_waits_for_the_lock_uses_the_snapshot_of_its_holder(simulation: Simulation) -> None:
    simulation.duration = 1.5
    first, second = simulation.process(), simulation.process(jitter=0.1)
    first.submit("1")
    simulation.run_until(simulation.now + 0.1)
    second.submit("2")
    simulation.run_until(simulation.now + 60)
    before = len(simulation.queries)

    simulation.run_until(simulation.now + 3 * LONGEST)

    assert len(simulation.queries) - before <= 4
    assert simulation.now - min(first.covered["1"], second.covered["2"]) < 1.2 * LONGEST


def test_processes_that_cannot_write_the_folder_poll_alone(tmp_path: Path) -> None:
    (tmp_path / "shared_poll").write_text("in the way")
    simulation = Simulation(str(tmp_path))
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    second.submit("2")

    simulation.run_until(simulation.now + SHORTEST)

    assert [ids for _, ids in simulation.queries] == [("1",), ("2",)]
    assert set(first.covered) | set(second.covered) == {"1", "2"}


def test_the_next_process_polls_for_one_that_was_killed(simulation: Simulation) -> None:
    first, second = simulation.process(), simulation.process()
    first.submit("1")
    second.submit("2")
    simulation.run_until(simulation.now + 60)

    simulation.processes.remove(first)
    simulation.run_until(simulation.now + 10 * LONGEST)

    assert simulation.now - second.covered["2"] < 1.2 * LONGEST
    assert simulation.queries[-1][1] == ("2",), "the announcement of the other has expired"


def test_immediate_polls_share_one_query_within_the_shortest_interval(simulation: Simulation) -> None:
    process, other = simulation.process(), simulation.process()
    jobs = [process.submit(str(number)) for number in range(100)]
    other.submit("other")
    simulation.run_until(simulation.now + 60)
    before = len(simulation.queries)

    for job in jobs:
        process.info(job)

    assert len(simulation.queries) <= before + 1
    assert not {job.native_id for job in jobs} - process.covered.keys()


def test_an_immediate_poll_waits_for_another_at_most_the_shortest_interval(simulation: Simulation) -> None:
    process = simulation.process()
    job = process.submit("1")
    simulation.run_until(simulation.now + 60)
    start, before = simulation.now, len(simulation.queries)

    with SharedPoll(simulation.root).lock_polling():
        simulation.processes.remove(process)
        snapshot = process.info(job)

    assert snapshot is not None
    assert len(simulation.queries) == before + 1
    assert start + SHORTEST <= simulation.now <= start + 1.2 * SHORTEST


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
def test_no_existing_job_is_ever_absent(
    script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
) -> None:
    """This holds for any times and durations of polls; `Process` asserts it for each snapshot."""
    with simulated(script, duration, lists_all, jitter) as simulation:
        for process in simulation.processes:
            simulation.duration = 0.0
            simulation.run_until(simulation.now + 2.2 * LONGEST)
            assert {job.native_id for job in process.jobs} == process.covered.keys()


@settings(deadline=None)
@given(
    events.map(lambda script: [event for event in script if event[2] != "info"]),
    st.floats(0, SHORTEST - 0.3),
    st.booleans(),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_processes_that_share_never_poll_twice_within_the_shortest_interval(
    script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
) -> None:
    with simulated(script, duration, lists_all, jitter) as simulation:
        assert all(gap >= SHORTEST - 1e-6 for gap in simulation.gaps())


# Time passes between a query and the step after it.
_TICK = 1e-6


class simulated:  # noqa: N801  named like a function
    """A simulation that ran a script."""

    def __init__(
        self, script: list[tuple[float, int, str]], duration: float, lists_all: bool, jitter: list[float]
    ) -> None:
        self._stack = ExitStack()
        root = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._world = simulation = Simulation(root, duration=duration, lists_all=lists_all)
        slots = [simulation.process(it) for it in jitter]
        for number, (pause, index, action) in enumerate(script):
            simulation.run_until(simulation.now + pause)
            simulation.now += _TICK
            process = slots[index]
            if action == "submit":
                process.submit(str(number))
            elif action == "recover" and simulation.known:
                process.follow(min(simulation.known))
            elif action == "info" and process.jobs:
                process.info(process.jobs[0])
            elif action == "kill":
                simulation.processes.remove(process)
                slots[index] = simulation.process(jitter[index])

    def __enter__(self) -> Simulation:
        return self._world

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def job(native_id: str, since: float) -> JobView:
    return JobView(native_id, native_id, 1, native_id, is_followed=True, since=since)


def snapshot(begun: float, *queried: str) -> Snapshot:
    return Snapshot(begun=begun, ended=begun + 1, queried=frozenset(queried), seen={})


def cases() -> Iterator[tuple[Snapshot, list[JobView], bool]]:
    yield snapshot(5, "1"), [job("1", 5), job("2", 4)], True
    yield snapshot(5, "1"), [job("1", 6), job("2", 4)], False
    yield attrs.evolve(snapshot(5), queried=None), [job("1", 5)], True
    yield attrs.evolve(snapshot(5), queried=None), [job("1", 6)], False


@pytest.mark.parametrize(
    ("given_snapshot", "jobs", "expected"),
    list(cases()),
    ids=["one", "later one", "all", "all are later"],
)
def test_a_snapshot_covers_a_job_that_was_followed_by_its_start(
    given_snapshot: Snapshot, jobs: list[JobView], expected: bool
) -> None:
    assert covers_any(given_snapshot, jobs) is expected


def test_a_snapshot_covers_its_jobs() -> None:
    assert snapshot(5, "1").covers("1", 4)
    assert not snapshot(5, "1").covers("1", 6), "followed later"
    assert not snapshot(5, "2").covers("1", 4), "of another"
