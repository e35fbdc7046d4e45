"""Tasks as jobs of a Flux instance, over the fake one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jpsi.fakes import on_path
from jpsi_pilot.flux_jobs import FluxJobs
from jpsi_pilot.node_log import NodeLog, carrier_of, log_of, story
from jpsi_pilot.values import End, Task
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
