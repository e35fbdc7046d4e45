"""Rounds of the agent over an engine that runs nothing, and pilots that are no jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import jpsi
from jpsi import Job, JobState, JobStatus
from jpsi_pilot.agent.journal import Journal
from jpsi_pilot.agent.pilot_jobs import PilotJobs
from jpsi_pilot.agent.scheduling_loop import PILOTS, Scheduling
from jpsi_pilot.node.node_log import NodeLog, engine_log_node, log_path, requested_stops
from jpsi_pilot.protocol.engine import Equipment
from jpsi_pilot.protocol.nodes import NodeLost, PilotNode
from jpsi_pilot.protocol.values import End, Need, Settings, Task
from pilot_support import submitted

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
    """Runs of it end when a test says so."""

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
        self.runs[task.native_id] = asyncio.get_running_loop().create_future()
        return await self.runs[task.native_id]

    async def stop(self, node: str, native_id: str) -> None:
        if node not in self.existing_nodes:
            raise NodeLost(node)
        self.stopped.append(native_id)

    async def close(self) -> None:
        pass

    def report(self, pilot: str, node: str = "node") -> str:
        """A node of a pilot reports."""
        name = f"{pilot}/{node}.1"
        self.existing_nodes[name] = PilotNode(name=name)
        return name

    def lose(self, node: str) -> None:
        """A node is gone, with all that ran there."""
        del self.existing_nodes[node]
        for run in self.runs.values():
            if not run.done():
                run.set_exception(NodeLost(node))


class FakePilots(PilotJobs):
    """Pilots whose states are set by a test."""

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


class Stage:
    """An agent's scheduling with everything around it."""

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
        event = submitted(number, settings=self.settings.key, client=None, need=need, **changes)
        self.journal.write(event)
        return self.state.native_id(number, None)

    async def run_round(self, seconds: float = 0.0) -> None:
        """A round, and all that it has begun."""
        self.time += seconds
        self.scheduling.run_round()
        for _ in range(20):
            await asyncio.sleep(0)
            await asyncio.to_thread(lambda: None)

    def job_word(self, native_id: str) -> str:
        """What the agent says of a job."""
        return self.state.jobs[native_id].state

    def set_pilot_state(self, state: JobState) -> None:
        """The last pilot is in this state."""
        self.pilots.started[-1]._publish(JobStatus(state))


Scenario = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def run_scenario(tmp_path: Path) -> Callable[[Scenario], None]:
    """Runs a test in an event loop."""

    def run(scenario: Scenario) -> None:
        async def run_to_end() -> None:
            stage = Stage(tmp_path)
            try:
                await scenario(stage)
            finally:
                stage.journal.close()

        asyncio.run(run_to_end())

    return run


def test_a_job_gets_a_pilot_and_runs_there_to_its_end(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        assert len(stage.pilots.started) == 1
        assert stage.job_word(job) == "waiting"
        stage.engine.report("1")
        await stage.run_round()
        assert stage.job_word(job) == "running"
        assert [task.variables for task in stage.engine.tasks] == [{"JPSI_PILOT_JOB": job}]
        stage.engine.runs[job].set_result(End(code=3))
        await stage.run_round()
        assert (stage.job_word(job), stage.state.jobs[job].code) == ("failed", 3)

    run_scenario(scenario)


def test_no_job_starts_where_it_would_not_end_before_the_pilot(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.submit(1, seconds=90)
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        assert stage.job_word(first) == "running"
        long, short = stage.submit(2, seconds=90), stage.submit(3, seconds=50)
        # 20 of the margin are for the start
        await stage.run_round(40)
        assert (stage.job_word(long), stage.job_word(short)) == ("waiting", "running")

    run_scenario(scenario)


def test_a_job_as_long_as_the_walltime_can_start_in_a_pilot_that_took_a_while(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit(1, seconds=SETTINGS.walltime)
        await stage.run_round()
        stage.set_pilot_state(JobState.ACTIVE)
        stage.time = stage.pilots.started[0].status.time.timestamp()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round(19)
        assert stage.job_word(job) == "running"

    run_scenario(scenario)


def test_a_pilot_that_started_too_late_for_all_waiting_jobs_is_cancelled_with_a_reason(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.submit(1, seconds=SETTINGS.walltime)
        await stage.run_round()
        stage.set_pilot_state(JobState.ACTIVE)
        stage.time = stage.pilots.started[0].status.time.timestamp()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round(21)
        assert stage.pilots.cancelled == stage.pilots.started
        stage.engine.existing_nodes.clear()
        stage.set_pilot_state(JobState.CANCELED)
        await stage.run_round()
        assert "increase margin" in stage.scheduling.problems[SETTINGS.key]
        assert len(stage.pilots.started) == 1, "the next waits a little"
        await stage.run_round(2)
        assert len(stage.pilots.started) == 2

    run_scenario(scenario)


def test_a_job_of_a_lost_node_is_judged_once_nothing_runs_there_any_more(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        log = NodeLog(log_path(stage.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        stage.engine.lose(node)
        await stage.run_round(1000)
        assert stage.job_word(job) == "running", "it may run still"
        log.record_over()
        await stage.run_round()
        assert stage.job_word(job) == "lost"

    run_scenario(scenario)


@pytest.mark.parametrize("why", ["log", "pilot"])
def test_a_lost_job_with_retry_runs_again_in_another_pilot(
    run_scenario: Callable[[Scenario], None], why: str
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit(retry=True)
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        log = NodeLog(log_path(stage.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        stage.engine.lose(node)
        if why == "log":
            log.record_over()
        stage.set_pilot_state(JobState.FAILED)
        await stage.run_round()
        assert stage.job_word(job) == "waiting"
        await stage.run_round(2)
        stage.engine.report("2")
        await stage.run_round()
        assert stage.job_word(job) == "running"
        assert stage.state.jobs[job].restarts == 1

    run_scenario(scenario)


def test_a_job_that_is_cancelled_as_its_node_is_lost_gets_a_stop_request_file(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        NodeLog(log_path(stage.folder / PILOTS / "1", node)).record_beginning(job, 0)
        stage.journal.write({"what": "stopped", "ids": [job]})
        stage.scheduling.stop([stage.state.jobs[job]])
        await stage.run_round()
        assert stage.engine.stopped == [job]
        stage.engine.lose(node)
        await stage.run_round()
        assert requested_stops(stage.folder / PILOTS / "1") == [job]

    run_scenario(scenario)


def test_the_end_of_a_run_is_read_from_the_log_if_no_engine_reported_it(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        log = NodeLog(log_path(stage.folder / PILOTS / "1", node))
        log.record_beginning(job, 0)
        log.record_ended(job, 0, End(code=0))
        stage.engine.lose(node)
        await stage.run_round()
        assert stage.job_word(job) == "done"

    run_scenario(scenario)


def test_a_task_that_a_lost_node_never_began_does_not_count_as_a_run(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        NodeLog(log_path(stage.folder / PILOTS / "1", node)).record_over()
        stage.engine.lose(node)
        await stage.run_round()
        assert (stage.job_word(job), stage.state.jobs[job].restarts) == ("waiting", 0)

    run_scenario(scenario)


def test_an_idle_pilot_is_cancelled_and_one_in_use_is_not(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit(seconds=90)
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        await stage.run_round(SETTINGS.idle + 1)
        assert not stage.pilots.cancelled
        stage.engine.runs[job].set_result(End(code=0))
        await stage.run_round()
        await stage.run_round(SETTINGS.idle - 1)
        assert not stage.pilots.cancelled
        await stage.run_round(2)
        assert stage.pilots.cancelled == stage.pilots.started

    run_scenario(scenario)


def test_pilots_that_cannot_be_started_are_retried_with_backoff(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.submit()
        stage.pilots.submit_error = jpsi.SubmitException("no such queue")
        await stage.run_round()
        assert stage.scheduling.problems[SETTINGS.key] == "no pilot has started: no such queue"
        stage.pilots.submit_error = None
        await stage.run_round(1)
        assert stage.pilots.started == []
        await stage.run_round(2)
        assert len(stage.pilots.started) == 1

    run_scenario(scenario)


def test_pilots_that_are_lost_before_any_of_their_jobs_ended_are_retried_with_backoff(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.submit(retry=True)
        for pilot, pause in (("1", 2.0), ("2", 4.0), ("3", 8.0)):
            await stage.run_round()
            node = stage.engine.report(pilot)
            await stage.run_round()
            stage.engine.lose(node)
            stage.set_pilot_state(JobState.FAILED)
            await stage.run_round()
            assert (
                "ended before any of its jobs: its job is FAILED" in stage.scheduling.problems[SETTINGS.key]
            )
            await stage.run_round(pause - 1)
            assert len(stage.pilots.started) == int(pilot)
            stage.time += 1

    run_scenario(scenario)


def test_runs_of_an_earlier_agent_count_until_their_pilot_is_gone(tmp_path: Path) -> None:
    async def run_to_end() -> None:
        before = Stage(tmp_path)
        job = before.submit()
        await before.run_round()
        before.engine.report("1")
        await before.run_round()
        before.journal.close()

        after = Stage(tmp_path)
        assert after.job_word(job) == "running"
        await after.run_round()
        await after.run_round()
        assert after.job_word(job) == "lost", "its executor knows of no such pilot"
        after.journal.close()

    asyncio.run(run_to_end())


def test_a_cancelled_pilot_gets_no_job(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Stage) -> None:
        first = stage.submit(1)
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        stage.engine.runs[first].set_result(End(code=0))
        await stage.run_round()
        await stage.run_round(SETTINGS.idle + 1)
        assert stage.pilots.cancelled == stage.pilots.started
        second = stage.submit(2)
        await stage.run_round()
        assert stage.job_word(second) == "waiting"
        stage.engine.existing_nodes.clear()
        stage.set_pilot_state(JobState.CANCELED)
        await stage.run_round()
        await stage.run_round()
        assert len(stage.pilots.started) == 2

    run_scenario(scenario)


def test_a_pilot_whose_start_raises_an_unexpected_error_does_not_count(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.submit()
        stage.pilots.submit_error = ZeroDivisionError("a plugin's mistake")
        await stage.run_round()
        assert "a plugin's mistake" in stage.scheduling.problems[SETTINGS.key]
        stage.pilots.submit_error = None
        await stage.run_round(2)
        assert len(stage.pilots.started) == 1

    run_scenario(scenario)


def test_a_job_that_could_not_begin_fails_with_a_message(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        stage.engine.runs[job].set_result(End(code=None, why="unable", message="no room"))
        await stage.run_round()
        assert (stage.job_word(job), stage.state.jobs[job].message) == ("unable", "no room")

    run_scenario(scenario)


@pytest.mark.parametrize(("gpus", "expected"), [(2, 1), (0, None)])
def test_a_task_has_a_number_of_gpus_only_if_the_pilot_has_any(
    tmp_path: Path, gpus: int, expected: int | None
) -> None:
    async def run_to_end() -> None:
        stage = Stage(tmp_path, attrs.evolve(SETTINGS, gpus=gpus))
        stage.submit(1, gpus=gpus // 2)
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        assert [task.gpus for task in stage.engine.tasks] == [expected]
        stage.journal.close()

    asyncio.run(run_to_end())


def test_a_cancel_of_a_pilot_that_raises_an_unexpected_error_is_retried(
    run_scenario: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_pilot.agent.fleet._RETRY_DELAY", 0.0)

    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        stage.engine.runs[job].set_result(End(code=0))
        await stage.run_round()
        stage.pilots.cancel_error = ZeroDivisionError("a plugin's mistake")
        await stage.run_round(SETTINGS.idle + 1)
        assert stage.pilots.cancelled == []
        stage.pilots.cancel_error = None
        await stage.run_round()
        assert stage.pilots.cancelled == stage.pilots.started

    run_scenario(scenario)


def test_a_job_of_several_nodes_is_judged_once_its_engine_and_its_lost_nodes_are_done(
    tmp_path: Path,
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit(nodes=2)
        await stage.run_round()
        first, second = stage.engine.report("1", "a"), stage.engine.report("1", "b")
        await stage.run_round()
        assert (stage.job_word(job), set(stage.state.jobs[job].nodes)) == ("running", {first, second})
        logs = {node: NodeLog(log_path(stage.folder / PILOTS / "1", node)) for node in (first, second)}
        logs[first].record_beginning(job, 0)
        logs[second].record_over()
        del stage.engine.existing_nodes[second]
        await stage.run_round()
        assert stage.job_word(job) == "running", "it may still run on the first"
        stage.engine.runs[job].set_exception(NodeLost(second))
        await stage.run_round()
        await stage.run_round()
        assert stage.job_word(job) == "lost"
        stage.journal.close()

    async def run_to_end() -> None:
        await scenario(Stage(tmp_path, attrs.evolve(SETTINGS, nodes=2)))

    asyncio.run(run_to_end())


def test_the_log_of_an_engine_counts_for_a_lost_node(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        node = stage.engine.report("1")
        await stage.run_round()
        NodeLog(log_path(stage.folder / PILOTS / "1", engine_log_node(node))).record_ended(
            job, 0, End(code=7)
        )
        stage.engine.lose(node)
        await stage.run_round()
        assert (stage.job_word(job), stage.state.jobs[job].code) == ("failed", 7)

    run_scenario(scenario)


def test_a_run_that_is_over_without_a_known_end_is_lost(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        stage.engine.runs[job].set_result(End(code=None, why="lost"))
        await stage.run_round()
        assert stage.job_word(job) == "lost"

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("end", "code"),
    [(End(code=143, why="pilot"), 143), (End(code=143, why="lost"), None)],
    ids=["ended with its pilot", "without a known end"],
)
def test_a_run_that_is_lost_has_an_exit_code_only_if_its_end_is_known(
    run_scenario: Callable[[Scenario], None], end: End, code: int | None
) -> None:
    async def scenario(stage: Stage) -> None:
        job = stage.submit()
        await stage.run_round()
        stage.engine.report("1")
        await stage.run_round()
        stage.engine.runs[job].set_result(end)
        await stage.run_round()
        assert (stage.job_word(job), stage.state.jobs[job].code) == ("lost", code)

    run_scenario(scenario)
