"""Tasks as jobs of a Flux instance, over the fake one."""

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
from jpsi_pilot.node.node_log import NodeLog, carrier_of, log_of, story
from jpsi_pilot.protocol.values import End, Task
from jpsi_testing.fake import on_path
from jpsi_testing.waiting import eventually
from test_flux_parts import task

PATIENCE = 60.0
PLACE = "7/a.1"


class Stage:
    """The jobs of a pilot, and what is told of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pilots" / "7"
        self.folder.mkdir(parents=True)
        (folder / "environments").mkdir()
        (folder / "environments" / "x").write_text(json.dumps({"PATH": os.defpath}))
        NodeLog(log_of(self.folder, PLACE)).worker(os.getpid())
        self.ends: asyncio.Queue[tuple[str, End | None]] = asyncio.Queue()
        self.jobs = FluxJobs(self.folder, PLACE, self._told)

    def _told(self, it: Task, end: End | None) -> None:
        self.ends.put_nowait((it.native_id, end))

    async def next_end(self) -> tuple[str, End | None]:
        return await asyncio.wait_for(self.ends.get(), PATIENCE)


Play = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Play], None]:
    """Runs a test in an event loop."""

    async def whole(scene: Play) -> None:
        await scene(Stage(tmp_path))

    def run(scene: Play) -> None:
        with on_path("flux"):
            asyncio.run(whole(scene))

    return run


def test_ends_are_told_and_written_down(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(script="exit 3"), PLACE, [0])
        assert await stage.next_end() == ("a-1", End(code=3))
        assert story(log_of(stage.folder, carrier_of(PLACE))).ends == {("a-1", 2): End(code=3)}
        assert story(log_of(stage.folder, PLACE)).begun == {("a-1", 2)}
        await asyncio.wait_for(stage.jobs.drained(), PATIENCE)

    play(scene)


def test_one_that_is_stopped_before_it_was_submitted_never_is(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(), PLACE, [0])
        stage.jobs.stop("a-1")
        assert await stage.next_end() == ("a-1", End(code=None, why="cancel"))

    play(scene)


def test_without_its_environment_a_task_cannot_begin(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(environment="environments/nowhere"), PLACE, [0])
        _, end = await stage.next_end()
        assert end is not None
        assert (end.code, end.why) == (None, "unable")
        await asyncio.wait_for(stage.jobs.drained(), PATIENCE)

    play(scene)


def test_what_flux_refuses_cannot_begin_and_it_is_told_why(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(cores=1000), PLACE, [0])
        _, end = await stage.next_end()
        assert end is not None
        assert (end.code, end.why) == (None, "unable")
        assert "could not be submitted to Flux" in end.message

    play(scene)


def test_nothing_is_told_of_what_ends_with_the_pilot(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(), PLACE, [0])
        stage.jobs.close()
        await asyncio.wait_for(stage.jobs.drained(), PATIENCE)
        assert stage.ends.empty()
        assert story(log_of(stage.folder, carrier_of(PLACE))).ends == {}

    play(scene)


@pytest.mark.parametrize("many", [True, False], ids=["of some", "of all"])
def test_what_flux_did_not_cancel_is_cancelled_later(
    play: Callable[[Play], None], monkeypatch: pytest.MonkeyPatch, many: bool
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
    monkeypatch.setattr("jpsi_pilot.flux.jobs._AGAIN", 0.01)

    async def scene(stage: Stage) -> None:
        stage.jobs.run(task(script="sleep 1000", cores=1), PLACE, [0])
        stage.jobs.run(attrs.evolve(task(script="sleep 1000", cores=1), native_id="a-2"), PLACE, [0])
        begun = log_of(stage.folder, PLACE)
        assert await asyncio.to_thread(eventually, lambda: len(story(begun).begun) == 2)
        stage.jobs.stop("a-1")
        stage.jobs.stop("a-2")
        ended = {await stage.next_end(), await stage.next_end()}
        assert {(name, end and end.why) for name, end in ended} == {("a-1", "cancel"), ("a-2", "cancel")}
        assert calls == [2, 1 if many else 2]

    play(scene)
