"""Tasks as jobs of a Flux instance, over the fake Flux."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import attrs
import pytest

from jpsi import BulkException, Job, JobExecutor, SubmitException
from jpsi_pilot.flux.jobs import FluxJobs
from jpsi_pilot.node.node_log import NodeLog, engine_log_node, log_path, read_node_log
from jpsi_pilot.protocol.values import End, Task
from jpsi_testing.fake import on_path
from jpsi_testing.waiting import eventually
from test_flux_parts import task

PATIENCE = 60.0
PLACE = "7/a.1"


class JobsHarness:
    """The jobs of a pilot, and their reported ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pilots" / "7"
        self.folder.mkdir(parents=True)
        (folder / "environments").mkdir()
        (folder / "environments" / "x").write_text(json.dumps({"PATH": os.defpath}))
        NodeLog(log_path(self.folder, PLACE)).record_worker(os.getpid())
        self.ends: asyncio.Queue[tuple[str, End | None]] = asyncio.Queue()
        self.jobs = FluxJobs(self.folder, PLACE, self._record_end)

    def _record_end(self, it: Task, end: End | None) -> None:
        self.ends.put_nowait((it.native_id, end))

    async def next_end(self) -> tuple[str, End | None]:
        return await asyncio.wait_for(self.ends.get(), PATIENCE)


Scenario = Callable[[JobsHarness], Awaitable[None]]


@pytest.fixture
def run_scenario(tmp_path: Path) -> Callable[[Scenario], None]:
    """Return a function that runs a test in an event loop."""

    async def run_to_end(scenario: Scenario) -> None:
        await scenario(JobsHarness(tmp_path))

    def run(scenario: Scenario) -> None:
        with on_path("flux"):
            asyncio.run(run_to_end(scenario))

    return run


def test_ends_are_reported_and_recorded(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(script="exit 3"), PLACE, [0])
        assert await harness.next_end() == ("a-1", End(code=3))
        assert read_node_log(log_path(harness.folder, engine_log_node(PLACE))).ends == {
            ("a-1", 2): End(code=3)
        }
        assert read_node_log(log_path(harness.folder, PLACE)).begun == {("a-1", 2)}
        await asyncio.wait_for(harness.jobs.drain(), PATIENCE)

    run_scenario(scenario)


def test_a_task_that_is_stopped_before_its_submission_is_not_submitted(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(), PLACE, [0])
        harness.jobs.stop("a-1")
        assert await harness.next_end() == ("a-1", End(code=None, why="cancel"))

    run_scenario(scenario)


def test_without_its_environment_a_task_cannot_begin(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(environment="environments/nowhere"), PLACE, [0])
        _, end = await harness.next_end()
        assert end is not None
        assert (end.code, end.why) == (None, "unable")
        await asyncio.wait_for(harness.jobs.drain(), PATIENCE)

    run_scenario(scenario)


def test_a_task_that_flux_refuses_ends_with_a_message(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(cores=1000), PLACE, [0])
        _, end = await harness.next_end()
        assert end is not None
        assert (end.code, end.why) == (None, "unable")
        assert "could not be submitted to Flux" in end.message

    run_scenario(scenario)


def test_tasks_that_end_with_the_pilot_are_not_reported(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(), PLACE, [0])
        harness.jobs.close()
        await asyncio.wait_for(harness.jobs.drain(), PATIENCE)
        assert harness.ends.empty()
        assert read_node_log(log_path(harness.folder, engine_log_node(PLACE))).ends == {}

    run_scenario(scenario)


@pytest.mark.parametrize("many", [True, False], ids=["of some", "of all"])
def test_a_failed_cancel_is_retried(
    run_scenario: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    cancel_many, calls = JobExecutor.cancel_many, list[int]()

    def fail_once(executor: JobExecutor, jobs: Iterable[Job]) -> None:
        jobs = list(jobs)
        calls.append(len(jobs))
        if len(calls) > 1:
            cancel_many(executor, jobs)
            return
        msg = "Flux does not answer"
        error = SubmitException(msg)
        if many:
            cancel_many(executor, jobs[:1])
            error = BulkException.of("cancelled", jobs[:1], {jobs[1]: error})
        raise error

    monkeypatch.setattr(JobExecutor, "cancel_many", fail_once)
    monkeypatch.setattr("jpsi_pilot.flux.jobs._CANCEL_RETRY_DELAY", 0.01)

    async def scenario(harness: JobsHarness) -> None:
        harness.jobs.run(task(script="sleep 1000", cores=1), PLACE, [0])
        harness.jobs.run(attrs.evolve(task(script="sleep 1000", cores=1), native_id="a-2"), PLACE, [0])
        begun = log_path(harness.folder, PLACE)
        assert await asyncio.to_thread(eventually, lambda: len(read_node_log(begun).begun) == 2)
        harness.jobs.stop("a-1")
        harness.jobs.stop("a-2")
        ended = {await harness.next_end(), await harness.next_end()}
        assert {(name, end and end.why) for name, end in ended} == {("a-1", "cancel"), ("a-2", "cancel")}
        assert calls == [2, 1 if many else 2]

    run_scenario(scenario)
