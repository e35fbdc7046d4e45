"""The rounds of the agent's scheduling loop, with a fake engine and fake pilots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import pytest

import jpsi
from jpsi import Job, JobState, JobStatus
from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.pilot_jobs import PilotJobs
from jpsi_pilot.agent.scheduling_loop import PILOTS, Scheduling
from jpsi_pilot.node.node_log import NodeLog, engine_log_node, log_path, requested_stops
from jpsi_pilot.protocol.engine import Equipment, NodeLost, PilotNode
from jpsi_pilot.protocol.values import End, Need, Settings, Task
from pilot_support import submission_event

SETTINGS = Settings(
    target="local",
    engine="fake",
    max_pilots=1,
    nodes=1,
    cores=2,
    gpus=0,
    memory=None,
    walltime=100,
    margin=30,
    idle=20.0,
    kill_delay=1.0,
    shared=True,
    queue_name=None,
    project_name=None,
    startup=(),
    launcher=None,
    interface=None,
)


class FakeEngine:
    """An engine whose runs end when a test says so."""

    name = "fake"
    spans_nodes = True
    needs_launcher = False

    def __init__(self) -> None:
        self.existing_nodes: dict[str, PilotNode] = {}
        self.runs: dict[str, asyncio.Future[End]] = {}
        self.tasks: list[Task] = []
        self.stopped: list[str] = []

    async def start(self) -> None:
        pass

    def equip(self, folder: Path, settings: Settings) -> Equipment:
        return Equipment(module=["a.module"])

    def nodes(self) -> Mapping[str, PilotNode]:
        return self.existing_nodes

    async def run(self, nodes: Sequence[str], task: Task) -> End:
        self.tasks.append(task)
        run = self.runs[task.native_id] = asyncio.get_running_loop().create_future()
        current = asyncio.current_task()
        assert current is not None
        _RUNS[current] = run
        return await run

    async def stop(self, node: str, native_id: str) -> None:
        if node not in self.existing_nodes:
            raise NodeLost(node)
        self.stopped.append(native_id)

    async def close(self) -> None:
        pass

    def report(self, pilot: str, node: str = "node") -> str:
        """Report a node of a pilot."""
        name = f"{pilot}/{node}.1"
        self.existing_nodes[name] = PilotNode(name=name)
        return name

    def lose(self, node: str) -> None:
        """Lose a node, with all its runs."""
        del self.existing_nodes[node]
        for run in self.runs.values():
            if not run.done():
                run.set_exception(NodeLost(node))


# The ends for which tasks of all engines wait, which tests set.
_RUNS = WeakKeyDictionary[asyncio.Task[Any], asyncio.Future[End]]()


def _is_run(task: asyncio.Task[Any]) -> bool:
    """Return True if a task waits for the end of a run."""
    run = _RUNS.get(task)
    return run is not None and not run.done()


class FakePilots(PilotJobs):
    """Pilots whose states a test sets."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.started: list[Job] = []
        self.cancelled: list[Job] = []
        self.submit_error: Exception | None = None
        self.cancel_error: Exception | None = None

    def submit(self, job: Job, target: str) -> None:
        if self.submit_error is not None:
            raise self.submit_error
        self.started.append(job)

    def recall(self, job_id: str, target: str) -> Job | None:
        return None

    def cancel(self, job: Job) -> None:
        if self.cancel_error is not None:
            raise self.cancel_error
        self.cancelled.append(job)


class LoopHarness:
    """An agent's scheduling loop with all its collaborators."""

    def __init__(self, folder: Path, settings: Settings = SETTINGS) -> None:
        self.folder = folder
        self.settings = settings
        self.time = 1000.0
        self.engine, self.pilots = FakeEngine(), FakePilots()
        self.journal = Journal(folder, 0.0)
        self.state = self.journal.state
        self.journal.write({"what": "settings", "values": settings.to_dict()})
        self.scheduling = Scheduling(
            self.journal,
            folder,
            lambda: self.time,
            wake=lambda: None,
            jobs=self.pilots,
            new_engine=lambda *_: self.engine,
        )

    def submit(
        self, number: int = 1, seconds: int = 10, gpus: int = 0, nodes: int = 1, **changes: Any
    ) -> str:
        """Submit a job."""
        need = Need(seconds=seconds, nodes=nodes, gpus=gpus).to_dict()
        event = submission_event(number, settings=self.settings.key, client=None, need=need, **changes)
        self.journal.write(event)
        return self.state.native_id(number, None)

    async def run_round(self, seconds: float = 0.0) -> None:
        """Run a round, and everything that it has started, until there are only runs that a test ends."""
        self.time += seconds
        self.scheduling.run_round()
        own = asyncio.current_task()
        async with asyncio.timeout(60):
            while busy := [it for it in asyncio.all_tasks() if it is not own and not _is_run(it)]:
                # a task may also come to wait for the end of a run
                await asyncio.wait(busy, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)

    def job_word(self, native_id: str) -> str:
        """Return the agent's status of a job."""
        return self.state.jobs[native_id].state

    def set_pilot_state(self, state: JobState) -> None:
        """Set the state of the last pilot."""
        self.pilots.started[-1]._publish(JobStatus(state))


Scenario = Callable[[LoopHarness], Awaitable[None]]


@pytest.fixture
def run_scenario(tmp_path: Path) -> Callable[[Scenario], None]:
    """Return a function that runs a test in an event loop."""

    def run(scenario: Scenario) -> None:
        async def run_to_end() -> None:
            harness = LoopHarness(tmp_path)
            try:
                await scenario(harness)
            finally:
                harness.journal.close()

        asyncio.run(run_to_end())

    return run


def test_a_job_gets_a_pilot_and_runs_there_to_its_end(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        assert len(harness.pilots.started) == 1
        assert harness.job_word(job) == "waiting"
        harness.engine.report("1")
        await harness.run_round()
        assert harness.job_word(job) == "running"
        assert [task.variables for task in harness.engine.tasks] == [{"JPSI_PILOT_JOB": job}]
        harness.engine.runs[job].set_result(End(code=3))
        await harness.run_round()
        assert (harness.job_word(job), harness.state.jobs[job].code) == ("failed", 3)

    run_scenario(scenario)


def test_no_job_starts_where_it_would_not_end_before_the_pilot(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        first = harness.submit(1, seconds=90)
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        assert harness.job_word(first) == "running"
        long, short = harness.submit(2, seconds=90), harness.submit(3, seconds=50)
        # 20 s of the margin are for the start
        await harness.run_round(40)
        assert (harness.job_word(long), harness.job_word(short)) == ("waiting", "running")

    run_scenario(scenario)


def test_a_job_as_long_as_the_walltime_can_start_in_a_pilot_that_took_a_while(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit(1, seconds=SETTINGS.walltime)
        await harness.run_round()
        harness.set_pilot_state(JobState.ACTIVE)
        harness.time = harness.pilots.started[0].status.time.timestamp()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round(19)
        assert harness.job_word(job) == "running"

    run_scenario(scenario)


def test_a_pilot_that_started_too_late_for_all_waiting_jobs_is_cancelled_with_a_reason(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit(1, seconds=SETTINGS.walltime)
        await harness.run_round()
        harness.set_pilot_state(JobState.ACTIVE)
        harness.time = harness.pilots.started[0].status.time.timestamp()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round(21)
        assert harness.pilots.cancelled == harness.pilots.started
        harness.engine.existing_nodes.clear()
        harness.set_pilot_state(JobState.CANCELED)
        await harness.run_round()
        assert "increase margin" in harness.scheduling.problems[SETTINGS.key]
        assert len(harness.pilots.started) == 1, "the next waits a little"
        await harness.run_round(2)
        assert len(harness.pilots.started) == 2

    run_scenario(scenario)


@pytest.mark.parametrize(("reported", "lost"), [(2, 1), (2, 2), (1, 0), (0, 0)])
def test_a_pilot_without_the_nodes_that_waiting_jobs_need_makes_room_for_another(
    tmp_path: Path, reported: int, lost: int
) -> None:
    """A node was lost while the pilot ran on, or it never came."""

    async def scenario() -> None:
        harness = LoopHarness(tmp_path, attrs.evolve(SETTINGS, nodes=2, walltime=3600))
        job = harness.submit(nodes=2)
        await harness.run_round()
        harness.set_pilot_state(JobState.ACTIVE)
        harness.time = harness.pilots.started[0].status.time.timestamp()
        if reported == 2:
            nodes = [harness.engine.report("1", name) for name in ("a", "b")]
            await harness.run_round()
            harness.engine.runs[job].set_result(End(code=0))
            await harness.run_round()
            for it in nodes[:lost]:
                harness.engine.existing_nodes.pop(it)
            job = harness.submit(2, nodes=2)
        elif reported:
            harness.engine.report("1")
        await harness.run_round()
        await harness.run_round(299)
        assert not harness.pilots.cancelled
        await harness.run_round(2)
        await harness.run_round(1)
        assert harness.pilots.cancelled == harness.pilots.started

        problem = harness.scheduling.problems.get(harness.settings.key, "")
        assert problem.endswith("" if reported == 2 else f"had only {reported} of its 2 nodes")
        harness.engine.existing_nodes.clear()
        harness.set_pilot_state(JobState.CANCELED)
        await harness.run_round()
        await harness.run_round(5)
        for name in ("a", "b"):
            harness.engine.report("2", name)
        await harness.run_round()
        assert harness.job_word(job) == "running"
        harness.journal.close()

    asyncio.run(scenario())


def test_a_job_whose_node_stays_lost_while_its_pilot_runs_on_ends_with_the_pilot(
    run_scenario: Callable[[Scenario], None],
) -> None:
    """An instance of Flux may lose a node whose processes live on."""

    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        harness.set_pilot_state(JobState.ACTIVE)
        harness.time = harness.pilots.started[0].status.time.timestamp()
        node = harness.engine.report("1")
        await harness.run_round()
        harness.engine.lose(node)
        await harness.run_round()
        await harness.run_round(299)
        assert not harness.pilots.cancelled
        await harness.run_round(2)
        await harness.run_round(SETTINGS.idle)
        assert harness.pilots.cancelled == harness.pilots.started
        assert harness.job_word(job) == "running"
        harness.set_pilot_state(JobState.CANCELED)
        await harness.run_round()
        assert harness.job_word(job) == "lost"

    run_scenario(scenario)


def test_a_job_whose_node_cannot_reach_the_agent_runs_to_its_end(
    run_scenario: Callable[[Scenario], None],
) -> None:
    """The nodes of an engine whose jobs have one node each carry on without the agent, and log the ends."""

    async def scenario(harness: LoopHarness) -> None:
        harness.engine.spans_nodes = False
        harness.submit()
        await harness.run_round()
        harness.set_pilot_state(JobState.ACTIVE)
        harness.time = harness.pilots.started[0].status.time.timestamp()
        node = harness.engine.report("1")
        await harness.run_round()
        harness.engine.lose(node)
        await harness.run_round()
        await harness.run_round(301)
        await harness.run_round(SETTINGS.idle)
        assert not harness.pilots.cancelled

    run_scenario(scenario)


def test_a_job_of_a_lost_node_ends_once_no_process_runs_there(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        log = NodeLog(log_path(harness.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        harness.engine.lose(node)
        await harness.run_round(1000)
        assert harness.job_word(job) == "running", "it may run still"
        log.record_over()
        await harness.run_round()
        assert harness.job_word(job) == "lost"

    run_scenario(scenario)


@pytest.mark.parametrize("why", ["log", "pilot"])
def test_a_lost_job_with_retry_runs_again_in_another_pilot(
    run_scenario: Callable[[Scenario], None], why: str
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit(retry=True)
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        log = NodeLog(log_path(harness.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        harness.engine.lose(node)
        if why == "log":
            log.record_over()
        harness.set_pilot_state(JobState.FAILED)
        await harness.run_round()
        assert harness.job_word(job) == "waiting"
        await harness.run_round(2)
        harness.engine.report("2")
        await harness.run_round()
        assert harness.job_word(job) == "running"
        assert harness.state.jobs[job].restarts == 1

    run_scenario(scenario)


def test_a_job_that_is_cancelled_as_its_node_is_lost_gets_a_stop_request_file(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        NodeLog(log_path(harness.folder / PILOTS / "1", node)).record_beginning(job, 0)
        harness.journal.write({"what": "stopped", "ids": [job]})
        harness.scheduling.stop([harness.state.jobs[job]])
        await harness.run_round()
        assert harness.engine.stopped == [job]
        harness.engine.lose(node)
        await harness.run_round()
        assert requested_stops(harness.folder / PILOTS / "1") == [job]

    run_scenario(scenario)


def test_the_end_of_a_run_is_read_from_the_log_if_no_engine_reported_it(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        log = NodeLog(log_path(harness.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        log.record_ended(job, 0, End(code=0))
        harness.engine.lose(node)
        await harness.run_round()
        assert harness.job_word(job) == "done"

    run_scenario(scenario)


def test_a_task_that_a_lost_node_never_began_does_not_count_as_a_run(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        NodeLog(log_path(harness.folder / PILOTS / "1", node)).record_over()
        harness.engine.lose(node)
        await harness.run_round()
        assert (harness.job_word(job), harness.state.jobs[job].restarts) == ("waiting", 0)

    run_scenario(scenario)


def test_an_idle_pilot_is_cancelled_and_one_in_use_is_not(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit(seconds=90)
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        await harness.run_round(SETTINGS.idle + 1)
        assert not harness.pilots.cancelled
        harness.engine.runs[job].set_result(End(code=0))
        await harness.run_round()
        await harness.run_round(SETTINGS.idle - 1)
        assert not harness.pilots.cancelled
        await harness.run_round(2)
        assert harness.pilots.cancelled == harness.pilots.started

    run_scenario(scenario)


def test_pilots_that_cannot_be_started_are_retried_with_backoff(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit()
        harness.pilots.submit_error = jpsi.SubmitException("no such queue")
        await harness.run_round()
        assert harness.scheduling.problems[SETTINGS.key] == "no pilot has started: no such queue"
        harness.pilots.submit_error = None
        await harness.run_round(1)
        assert harness.pilots.started == []
        await harness.run_round(2)
        assert len(harness.pilots.started) == 1

    run_scenario(scenario)


def test_pilots_that_are_lost_before_any_of_their_jobs_ended_are_retried_with_backoff(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit(retry=True)
        for pilot, pause in (("1", 2.0), ("2", 4.0), ("3", 8.0)):
            await harness.run_round()
            node = harness.engine.report(pilot)
            await harness.run_round()
            harness.engine.lose(node)
            harness.set_pilot_state(JobState.FAILED)
            await harness.run_round()
            assert (
                "ended before any of its jobs: its job is FAILED" in harness.scheduling.problems[SETTINGS.key]
            )
            await harness.run_round(pause - 1)
            assert len(harness.pilots.started) == int(pilot)
            harness.time += 1

    run_scenario(scenario)


def test_pilots_that_end_at_once_three_times_stop_the_queue_until_a_job_is_submitted(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit()
        for _ in range(3):
            await harness.run_round(100)
            harness.set_pilot_state(JobState.FAILED)
            await harness.run_round()
        await harness.run_round(100_000)
        assert len(harness.pilots.started) == 3
        problem = harness.scheduling.problems[SETTINGS.key]
        assert problem.startswith("the last 3 pilots ended at once, and no other is started until a job is")
        assert problem.endswith("submitted: its job is FAILED")

        harness.scheduling.resume(SETTINGS.key)
        await harness.run_round()
        assert len(harness.pilots.started) == 4

    run_scenario(scenario)


@pytest.mark.parametrize("has_node", [True, False], ids=["a node reported", "it ran for a while"])
def test_a_pilot_that_ran_for_a_while_or_had_a_node_has_not_ended_at_once(
    run_scenario: Callable[[Scenario], None], has_node: bool
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit(retry=True)
        for number in range(1, 5):
            await harness.run_round(1000)
            assert len(harness.pilots.started) == number
            harness.set_pilot_state(JobState.ACTIVE)
            node = harness.engine.report(str(number)) if has_node else None
            await harness.run_round()
            if node is not None:
                harness.engine.lose(node)
            harness.time += 0 if has_node else 90
            harness.set_pilot_state(JobState.FAILED)
            await harness.run_round()

    run_scenario(scenario)


def test_runs_of_an_earlier_agent_count_until_their_pilot_is_gone(tmp_path: Path) -> None:
    async def run_to_end() -> None:
        before = LoopHarness(tmp_path)
        job = before.submit()
        await before.run_round()
        before.engine.report("1")
        await before.run_round()
        before.journal.close()

        after = LoopHarness(tmp_path)
        assert after.job_word(job) == "running"
        await after.run_round()
        await after.run_round()
        assert after.job_word(job) == "lost", "its executor knows of no such pilot"
        after.journal.close()

    asyncio.run(run_to_end())


def test_a_pilot_of_an_earlier_agent_is_left_alone_while_its_jobs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes report to that agent, and never to this one."""

    async def run_to_end() -> None:
        before = LoopHarness(tmp_path)
        job = before.submit()
        await before.run_round()
        before.engine.report("1")
        await before.run_round()
        before.journal.close()
        pilot = Job()
        pilot._publish(JobStatus(JobState.ACTIVE))
        monkeypatch.setattr(FakePilots, "recall", lambda *_: pilot)

        after = LoopHarness(tmp_path)
        await after.run_round()
        await after.run_round()
        await after.run_round(1000)
        assert (after.job_word(job), after.pilots.cancelled) == ("running", [])
        after.journal.close()

    asyncio.run(run_to_end())


def test_a_cancelled_pilot_gets_no_job(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: LoopHarness) -> None:
        first = harness.submit(1)
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        harness.engine.runs[first].set_result(End(code=0))
        await harness.run_round()
        await harness.run_round(SETTINGS.idle + 1)
        assert harness.pilots.cancelled == harness.pilots.started
        second = harness.submit(2)
        await harness.run_round()
        assert harness.job_word(second) == "waiting"
        harness.engine.existing_nodes.clear()
        harness.set_pilot_state(JobState.CANCELED)
        await harness.run_round()
        await harness.run_round()
        assert len(harness.pilots.started) == 2

    run_scenario(scenario)


def test_a_pilot_whose_start_raises_an_unexpected_error_does_not_count(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        harness.submit()
        harness.pilots.submit_error = ZeroDivisionError("a plugin's mistake")
        await harness.run_round()
        assert "a plugin's mistake" in harness.scheduling.problems[SETTINGS.key]
        harness.pilots.submit_error = None
        await harness.run_round(2)
        assert len(harness.pilots.started) == 1

    run_scenario(scenario)


def test_a_job_that_could_not_begin_fails_with_a_message(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        harness.engine.runs[job].set_result(End(code=None, why="unable", message="no room"))
        await harness.run_round()
        assert (harness.job_word(job), harness.state.jobs[job].message) == ("unable", "no room")

    run_scenario(scenario)


@pytest.mark.parametrize(("gpus", "expected"), [(2, 1), (0, None)])
def test_a_task_has_a_number_of_gpus_only_if_the_pilot_has_any(
    tmp_path: Path, gpus: int, expected: int | None
) -> None:
    async def run_to_end() -> None:
        harness = LoopHarness(tmp_path, attrs.evolve(SETTINGS, gpus=gpus))
        harness.submit(1, gpus=gpus // 2)
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        assert [task.gpus for task in harness.engine.tasks] == [expected]
        harness.journal.close()

    asyncio.run(run_to_end())


def test_a_cancel_of_a_pilot_that_raises_an_unexpected_error_is_retried(
    run_scenario: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_pilot.agent.fleet._RETRY_DELAY", 0.0)

    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        harness.engine.runs[job].set_result(End(code=0))
        await harness.run_round()
        harness.pilots.cancel_error = ZeroDivisionError("a plugin's mistake")
        await harness.run_round(SETTINGS.idle + 1)
        assert harness.pilots.cancelled == []
        harness.pilots.cancel_error = None
        await harness.run_round()
        assert harness.pilots.cancelled == harness.pilots.started

    run_scenario(scenario)


def test_a_job_of_several_nodes_ends_once_its_engine_and_its_lost_nodes_are_done(
    tmp_path: Path,
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit(nodes=2)
        await harness.run_round()
        first, second = harness.engine.report("1", "a"), harness.engine.report("1", "b")
        await harness.run_round()
        assert (harness.job_word(job), set(harness.state.jobs[job].nodes)) == ("running", {first, second})
        logs = {node: NodeLog(log_path(harness.folder / PILOTS / "1", node)) for node in (first, second)}
        logs[first].record_beginning(job, 0)
        logs[second].record_over()
        del harness.engine.existing_nodes[second]
        await harness.run_round()
        assert harness.job_word(job) == "running", "it may still run on the first"
        harness.engine.runs[job].set_exception(NodeLost(second))
        await harness.run_round()
        await harness.run_round()
        assert harness.job_word(job) == "lost"
        harness.journal.close()

    async def run_to_end() -> None:
        await scenario(LoopHarness(tmp_path, attrs.evolve(SETTINGS, nodes=2)))

    asyncio.run(run_to_end())


def test_the_log_of_an_engine_counts_for_a_lost_node(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        node = harness.engine.report("1")
        await harness.run_round()
        NodeLog(log_path(harness.folder / PILOTS / "1", engine_log_node(node))).record_ended(
            job, 0, End(code=7)
        )
        harness.engine.lose(node)
        await harness.run_round()
        assert (harness.job_word(job), harness.state.jobs[job].code) == ("failed", 7)

    run_scenario(scenario)


def test_a_finished_run_without_a_known_end_is_lost(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        harness.engine.runs[job].set_result(End(code=None, why="lost"))
        await harness.run_round()
        assert harness.job_word(job) == "lost"

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("end", "code"),
    [(End(code=143, why="pilot"), 143), (End(code=143, why="lost"), None)],
    ids=["ended with its pilot", "without a known end"],
)
def test_a_run_that_is_lost_has_an_exit_code_only_if_its_end_is_known(
    run_scenario: Callable[[Scenario], None], end: End, code: int | None
) -> None:
    async def scenario(harness: LoopHarness) -> None:
        job = harness.submit()
        await harness.run_round()
        harness.engine.report("1")
        await harness.run_round()
        harness.engine.runs[job].set_result(end)
        await harness.run_round()
        assert (harness.job_word(job), harness.state.jobs[job].code) == ("lost", code)

    run_scenario(scenario)
