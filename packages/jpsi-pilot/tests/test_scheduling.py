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
from jpsi_pilot.agent.scheduling import PILOTS, Scheduling
from jpsi_pilot.node.node_log import NodeLog, carrier_of, log_of
from jpsi_pilot.node.stop_requests import requested_stops
from jpsi_pilot.protocol.engine import Equipment
from jpsi_pilot.protocol.places import Place, PlaceLost
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
        self.here: dict[str, Place] = {}
        self.runs: dict[str, asyncio.Future[End]] = {}
        self.tasks: list[Task] = []
        self.stopped: list[str] = []

    async def start(self) -> None:
        pass

    def equip(self, folder: Path, settings: Settings) -> Equipment:
        return Equipment(module=["a.module"])

    def places(self) -> Mapping[str, Place]:
        return self.here

    async def run(self, places: Sequence[str], task: Task) -> End:
        self.tasks.append(task)
        self.runs[task.native_id] = asyncio.get_running_loop().create_future()
        return await self.runs[task.native_id]

    async def stop(self, place: str, native_id: str) -> None:
        if place not in self.here:
            raise PlaceLost(place)
        self.stopped.append(native_id)

    async def close(self) -> None:
        pass

    def report(self, pilot: str, node: str = "node") -> str:
        """A node of a pilot reports."""
        name = f"{pilot}/{node}.1"
        self.here[name] = Place(name=name)
        return name

    def lose(self, place: str) -> None:
        """A node is gone, with all that ran there."""
        del self.here[place]
        for run in self.runs.values():
            if not run.done():
                run.set_exception(PlaceLost(place))


class FakePilots(PilotJobs):
    """Pilots whose states are set by a test."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.started: list[Job] = []
        self.cancelled: list[Job] = []
        self.refusal: Exception | None = None
        self.deafness: Exception | None = None

    def submit(self, job: Job, target: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.started.append(job)

    def recall(self, job_id: str, target: str) -> Job | None:
        return None

    def cancel(self, job: Job) -> None:
        if self.deafness is not None:
            raise self.deafness
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
        self.journal.write({"what": "settings", "values": settings.plain()})
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
        need = Need(seconds=seconds, nodes=nodes, gpus=gpus).plain()
        event = submitted(number, settings=self.settings.key, client=None, need=need, **changes)
        self.journal.write(event)
        return self.state.native_id(number, None)

    async def go(self, seconds: float = 0.0) -> None:
        """A round, and all that it has begun."""
        self.time += seconds
        self.scheduling.round()
        for _ in range(20):
            await asyncio.sleep(0)
            await asyncio.to_thread(lambda: None)

    def word(self, native_id: str) -> str:
        """What the agent says of a job."""
        return self.state.jobs[native_id].word

    def become(self, state: JobState) -> None:
        """The last pilot is in this state."""
        self.pilots.started[-1]._publish(JobStatus(state))


Play = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Play], None]:
    """Runs a test in an event loop."""

    def run(scene: Play) -> None:
        async def whole() -> None:
            stage = Stage(tmp_path)
            try:
                await scene(stage)
            finally:
                stage.journal.close()

        asyncio.run(whole())

    return run


def test_a_job_gets_a_pilot_and_runs_there_to_its_end(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        assert len(stage.pilots.started) == 1
        assert stage.word(job) == "waiting"
        stage.engine.report("1")
        await stage.go()
        assert stage.word(job) == "running"
        assert [task.variables for task in stage.engine.tasks] == [{"JPSI_PILOT_JOB": job}]
        stage.engine.runs[job].set_result(End(code=3))
        await stage.go()
        assert (stage.word(job), stage.state.jobs[job].code) == ("failed", 3)

    play(scene)


def test_no_job_starts_where_it_would_not_end_before_the_pilot(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        first = stage.submit(1, seconds=90)
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        assert stage.word(first) == "running"
        long, short = stage.submit(2, seconds=90), stage.submit(3, seconds=50)
        # 20 of the margin are for the start
        await stage.go(40)
        assert (stage.word(long), stage.word(short)) == ("waiting", "running")

    play(scene)


def test_a_job_as_long_as_the_walltime_can_start_in_a_pilot_that_took_a_while(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit(1, seconds=SETTINGS.walltime)
        await stage.go()
        stage.become(JobState.ACTIVE)
        stage.time = stage.pilots.started[0].status.time.timestamp()
        await stage.go()
        stage.engine.report("1")
        await stage.go(19)
        assert stage.word(job) == "running"

    play(scene)


def test_a_pilot_that_started_too_late_for_all_that_waits_goes_and_it_is_told_why(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        stage.submit(1, seconds=SETTINGS.walltime)
        await stage.go()
        stage.become(JobState.ACTIVE)
        stage.time = stage.pilots.started[0].status.time.timestamp()
        await stage.go()
        stage.engine.report("1")
        await stage.go(21)
        assert stage.pilots.cancelled == stage.pilots.started
        stage.engine.here.clear()
        stage.become(JobState.CANCELED)
        await stage.go()
        assert "make margin longer" in stage.scheduling.problems[SETTINGS.key]
        assert len(stage.pilots.started) == 1, "the next waits a little"
        await stage.go(2)
        assert len(stage.pilots.started) == 2

    play(scene)


def test_a_job_of_a_lost_place_is_judged_once_it_is_known_that_nothing_is_left_of_it(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        log = NodeLog(log_of(stage.folder / PILOTS / "1", place))
        log.beginning(job, 0)
        stage.engine.lose(place)
        await stage.go(1000)
        assert stage.word(job) == "running", "it may run still"
        log.over()
        await stage.go()
        assert stage.word(job) == "lost"

    play(scene)


@pytest.mark.parametrize("why", ["log", "pilot"])
def test_a_lost_job_that_may_runs_again_elsewhere(play: Callable[[Play], None], why: str) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit(retry=True)
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        log = NodeLog(log_of(stage.folder / PILOTS / "1", place))
        log.beginning(job, 0)
        stage.engine.lose(place)
        if why == "log":
            log.over()
        stage.become(JobState.FAILED)
        await stage.go()
        assert stage.word(job) == "waiting"
        await stage.go(2)
        stage.engine.report("2")
        await stage.go()
        assert stage.word(job) == "running"
        assert stage.state.jobs[job].restarts == 1

    play(scene)


def test_a_job_that_was_told_to_end_as_its_place_was_lost_is_told_by_a_file(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        NodeLog(log_of(stage.folder / PILOTS / "1", place)).beginning(job, 0)
        stage.journal.write({"what": "stopped", "ids": [job]})
        stage.scheduling.stop([stage.state.jobs[job]])
        await stage.go()
        assert stage.engine.stopped == [job]
        stage.engine.lose(place)
        await stage.go()
        assert requested_stops(stage.folder / PILOTS / "1") == [job]

    play(scene)


def test_how_a_run_ended_is_read_where_nobody_was_told(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        log = NodeLog(log_of(stage.folder / PILOTS / "1", place))
        log.beginning(job, 0)
        log.ended(job, 0, End(code=0))
        stage.engine.lose(place)
        await stage.go()
        assert stage.word(job) == "done"

    play(scene)


def test_what_was_only_on_its_way_to_a_lost_place_has_not_run(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        NodeLog(log_of(stage.folder / PILOTS / "1", place)).over()
        stage.engine.lose(place)
        await stage.go()
        assert (stage.word(job), stage.state.jobs[job].restarts) == ("waiting", 0)

    play(scene)


def test_an_idle_pilot_goes_and_one_in_use_stays(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit(seconds=90)
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        await stage.go(SETTINGS.idle + 1)
        assert not stage.pilots.cancelled
        stage.engine.runs[job].set_result(End(code=0))
        await stage.go()
        await stage.go(SETTINGS.idle - 1)
        assert not stage.pilots.cancelled
        await stage.go(2)
        assert stage.pilots.cancelled == stage.pilots.started

    play(scene)


def test_pilots_that_cannot_be_started_are_tried_later_each_time(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.submit()
        stage.pilots.refusal = jpsi.SubmitException("no such queue")
        await stage.go()
        assert stage.scheduling.problems[SETTINGS.key] == "no pilot has started: no such queue"
        stage.pilots.refusal = None
        await stage.go(1)
        assert stage.pilots.started == []
        await stage.go(2)
        assert len(stage.pilots.started) == 1

    play(scene)


def test_pilots_that_are_lost_before_any_job_in_them_has_ended_are_started_later_each_time(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        stage.submit(retry=True)
        for pilot, pause in (("1", 2.0), ("2", 4.0), ("3", 8.0)):
            await stage.go()
            place = stage.engine.report(pilot)
            await stage.go()
            stage.engine.lose(place)
            stage.become(JobState.FAILED)
            await stage.go()
            assert "ended before any job in it had: it is FAILED" in stage.scheduling.problems[SETTINGS.key]
            await stage.go(pause - 1)
            assert len(stage.pilots.started) == int(pilot)
            stage.time += 1

    play(scene)


def test_what_an_earlier_agent_left_running_counts_until_its_pilot_is_gone(tmp_path: Path) -> None:
    async def whole() -> None:
        before = Stage(tmp_path)
        job = before.submit()
        await before.go()
        before.engine.report("1")
        await before.go()
        before.journal.close()

        after = Stage(tmp_path)
        assert after.word(job) == "running"
        await after.go()
        await after.go()
        assert after.word(job) == "lost", "its executor knows of no such pilot"
        after.journal.close()

    asyncio.run(whole())


def test_a_pilot_that_was_told_to_end_gets_no_job(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        first = stage.submit(1)
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        stage.engine.runs[first].set_result(End(code=0))
        await stage.go()
        await stage.go(SETTINGS.idle + 1)
        assert stage.pilots.cancelled == stage.pilots.started
        second = stage.submit(2)
        await stage.go()
        assert stage.word(second) == "waiting"
        stage.engine.here.clear()
        stage.become(JobState.CANCELED)
        await stage.go()
        await stage.go()
        assert len(stage.pilots.started) == 2

    play(scene)


def test_a_pilot_whose_start_goes_wrong_in_an_unheard_of_way_does_not_count(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        stage.submit()
        stage.pilots.refusal = ZeroDivisionError("a plugin's mistake")
        await stage.go()
        assert "a plugin's mistake" in stage.scheduling.problems[SETTINGS.key]
        stage.pilots.refusal = None
        await stage.go(2)
        assert len(stage.pilots.started) == 1

    play(scene)


def test_a_job_that_could_not_begin_has_failed_and_it_is_told_why(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        stage.engine.runs[job].set_result(End(code=None, why="unable", message="no room"))
        await stage.go()
        assert (stage.word(job), stage.state.jobs[job].message) == ("unable", "no room")

    play(scene)


@pytest.mark.parametrize(("gpus", "expected"), [(2, 1), (0, None)])
def test_a_run_is_told_how_many_gpus_it_has_where_the_pilot_has_any(
    tmp_path: Path, gpus: int, expected: int | None
) -> None:
    async def whole() -> None:
        stage = Stage(tmp_path, attrs.evolve(SETTINGS, gpus=gpus))
        stage.submit(1, gpus=gpus // 2)
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        assert [task.gpus for task in stage.engine.tasks] == [expected]
        stage.journal.close()

    asyncio.run(whole())


def test_a_pilot_that_cannot_be_told_to_end_in_an_unheard_of_way_is_told_again(
    play: Callable[[Play], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_pilot.agent.pilot_lifecycle._PAUSE", 0.0)

    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        stage.engine.runs[job].set_result(End(code=0))
        await stage.go()
        stage.pilots.deafness = ZeroDivisionError("a plugin's mistake")
        await stage.go(SETTINGS.idle + 1)
        assert stage.pilots.cancelled == []
        stage.pilots.deafness = None
        await stage.go()
        assert stage.pilots.cancelled == stage.pilots.started

    play(scene)


def test_a_job_of_several_nodes_is_judged_once_the_engine_has_let_go_of_it_and_what_is_gone_is_over(
    tmp_path: Path,
) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit(nodes=2)
        await stage.go()
        first, second = stage.engine.report("1", "a"), stage.engine.report("1", "b")
        await stage.go()
        assert (stage.word(job), set(stage.state.jobs[job].places)) == ("running", {first, second})
        logs = {place: NodeLog(log_of(stage.folder / PILOTS / "1", place)) for place in (first, second)}
        logs[first].beginning(job, 0)
        logs[second].over()
        del stage.engine.here[second]
        await stage.go()
        assert stage.word(job) == "running", "it may still run on the first"
        stage.engine.runs[job].set_exception(PlaceLost(second))
        await stage.go()
        await stage.go()
        assert stage.word(job) == "lost"
        stage.journal.close()

    async def whole() -> None:
        await scene(Stage(tmp_path, attrs.evolve(SETTINGS, nodes=2)))

    asyncio.run(whole())


def test_what_an_engine_has_written_of_all_nodes_counts_where_a_place_is_gone(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        place = stage.engine.report("1")
        await stage.go()
        NodeLog(log_of(stage.folder / PILOTS / "1", carrier_of(place))).ended(job, 0, End(code=7))
        stage.engine.lose(place)
        await stage.go()
        assert (stage.word(job), stage.state.jobs[job].code) == ("failed", 7)

    play(scene)


def test_a_run_that_is_known_to_be_over_and_not_how_is_lost(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        job = stage.submit()
        await stage.go()
        stage.engine.report("1")
        await stage.go()
        stage.engine.runs[job].set_result(End(code=None, why="lost"))
        await stage.go()
        assert stage.word(job) == "lost"

    play(scene)
