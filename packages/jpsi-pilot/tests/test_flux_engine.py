"""The engine Flux in the agent, and nodes that are played: what is said, and to whom."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import pytest

from jpsi_pilot.flux.engine import ADDRESS, FluxEngine
from jpsi_pilot.network.certificates import Authority, calling
from jpsi_pilot.network.wire import Message, Wire
from jpsi_pilot.protocol.places import PlaceLost
from jpsi_pilot.protocol.values import End, Task
from test_flux_parts import task
from test_scheduling import SETTINGS

PATIENCE = 30.0
HEAD, OTHER = "7/a.1", "7/b.2"


@attrs.define(eq=False)
class Node:
    """The other end."""

    wire: Wire

    async def told(self) -> Message:
        """What the agent says next."""
        return await asyncio.wait_for(anext(aiter(self.wire.heard())), PATIENCE)

    def ended(self, it: Task, end: End | None) -> None:
        """Tell the agent of an end."""
        plain = None if end is None else end.plain()
        self.wire.say(native_id=it.native_id, restarts=it.restarts, end=plain)


class Stage:
    """An engine, and one pilot of it."""

    def __init__(self, folder: Path) -> None:
        self.changed = asyncio.Event()
        self.engine = FluxEngine(self.changed.set, attrs.evolve(SETTINGS, interface="lo"))
        self.nodes: list[Node] = []
        self.folder = folder / "7"
        self.folder.mkdir()

    async def start(self) -> None:
        await self.engine.start()
        equipment = self.engine.equip(self.folder, SETTINGS)
        assert equipment.module[0] == "jpsi_pilot.flux.node"

    async def connected(self, context: ssl.SSLContext) -> Node:
        """A node with such certificates."""
        host, port = (self.folder / ADDRESS).read_text().split()
        node = Node(Wire(*await asyncio.open_connection(host, int(port), ssl=context)))
        self.nodes.append(node)
        return node

    async def close(self) -> None:
        await self.engine.close()
        for node in self.nodes:
            await node.wire.close()

    async def report(self, place: str, rank: int) -> Node:
        """A node of the pilot that reports."""
        node = await self.connected(calling(self.folder))
        await self.until(lambda: node.wire.say(place=place, rank=rank))
        return node

    async def until(self, act: Callable[[], object]) -> None:
        """Wait until the engine has seen what comes of this."""
        self.changed.clear()
        act()
        await asyncio.wait_for(self.changed.wait(), PATIENCE)


Play = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Play], None]:
    """Runs a test in an event loop."""
    monkeypatch.chdir(tmp_path)

    async def whole(scene: Play) -> None:
        stage = Stage(tmp_path)
        await stage.start()
        try:
            await scene(stage)
        finally:
            await stage.close()

    return lambda scene: asyncio.run(whole(scene))


def test_nodes_are_places_once_the_first_of_them_takes_tasks(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        await stage.report(OTHER, 1)
        assert stage.engine.places() == {}
        await stage.report(HEAD, 0)
        assert set(stage.engine.places()) == {HEAD, OTHER}

    play(scene)


def test_a_task_goes_to_the_first_node_and_its_end_comes_back(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        head = await stage.report(HEAD, 0)
        await stage.report(OTHER, 1)
        run = asyncio.ensure_future(stage.engine.run([OTHER], task()))
        told = await head.told()
        assert (told["do"], told["ranks"], told["place"]) == ("run", [1], OTHER)
        assert Task.of(told["task"]) == task()
        await stage.engine.stop(OTHER, "a-1")
        assert await head.told() == {"do": "stop", "native_id": "a-1"}
        head.ended(task(), End(code=7, why="cancel"))
        assert await asyncio.wait_for(run, PATIENCE) == End(code=7, why="cancel")

    play(scene)


def test_a_job_of_several_nodes_knows_them_in_the_order_of_its_processes(
    play: Callable[[Play], None],
) -> None:
    async def scene(stage: Stage) -> None:
        head = await stage.report(HEAD, 0)
        await stage.report(OTHER, 1)
        run = asyncio.ensure_future(stage.engine.run([OTHER, HEAD], task()))
        told = await head.told()
        assert (told["ranks"], told["place"]) == ([0, 1], HEAD)
        assert told["task"]["variables"]["JPSI_PILOT_NODES"] == "a b"
        head.ended(task(), End(code=0))
        assert await asyncio.wait_for(run, PATIENCE) == End(code=0)

    play(scene)


def test_with_the_first_node_all_is_lost(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        head = await stage.report(HEAD, 0)
        await stage.report(OTHER, 1)
        run = asyncio.ensure_future(stage.engine.run([OTHER], task()))
        await head.told()
        await stage.until(lambda: asyncio.ensure_future(head.wire.close()))
        with pytest.raises(PlaceLost):
            await asyncio.wait_for(run, PATIENCE)
        assert stage.engine.places() == {}

    play(scene)


def test_a_node_that_flux_has_lost_is_no_place_any_more(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        head = await stage.report(HEAD, 0)
        await stage.report(OTHER, 1)
        run = asyncio.ensure_future(stage.engine.run([OTHER], task()))
        await head.told()
        head.ended(task(), None)
        with pytest.raises(PlaceLost):
            await asyncio.wait_for(run, PATIENCE)
        assert set(stage.engine.places()) == {HEAD}

    play(scene)


def test_who_has_no_certificate_of_the_agents_is_turned_away(
    play: Callable[[Play], None], tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    Authority().write(stranger, "7")
    theirs, nobody = calling(stranger), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (theirs, nobody):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def scene(stage: Stage) -> None:
        for context in (theirs, nobody):
            node = await stage.connected(context)
            node.wire.say(place=HEAD, rank=0)
            with pytest.raises(StopAsyncIteration):
                await node.told()
        assert stage.engine.places() == {}

    play(scene)


def test_a_node_says_only_what_it_is_itself(play: Callable[[Play], None]) -> None:
    async def scene(stage: Stage) -> None:
        node = await stage.connected(calling(stage.folder))
        node.wire.say(place="8/a.1", rank=0)
        with pytest.raises(StopAsyncIteration):
            await node.told()
        assert stage.engine.places() == {}

    play(scene)
