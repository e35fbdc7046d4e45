"""The engine Flux in the agent, with fake nodes: the messages, and their receivers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import pytest

from jpsi_pilot.flux.engine import ADDRESS, FluxEngine
from jpsi_pilot.network.certificates import Authority, client_context
from jpsi_pilot.network.wire import Message, Wire
from jpsi_pilot.protocol.engine import NodeLost
from jpsi_pilot.protocol.values import End, Task
from test_flux_parts import task
from test_scheduling_loop import SETTINGS

PATIENCE = 30.0
HEAD, OTHER = "7/a.1", "7/b.2"


@attrs.define(eq=False)
class Node:
    """A fake node, the other end of the engine's connection."""

    wire: Wire

    async def next_message(self) -> Message:
        """Return the agent's next message."""
        return await asyncio.wait_for(anext(aiter(self.wire.messages())), PATIENCE)

    def send_end(self, it: Task, end: End | None) -> None:
        """Report an end to the agent."""
        plain = None if end is None else end.to_dict()
        self.wire.send(native_id=it.native_id, restarts=it.restarts, end=plain)


class EngineHarness:
    """An engine with one pilot."""

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
        """Return a node that connects with these certificates."""
        host, port = (self.folder / ADDRESS).read_text().split()
        node = Node(Wire(*await asyncio.open_connection(host, int(port), ssl=context)))
        self.nodes.append(node)
        return node

    async def close(self) -> None:
        await self.engine.close()
        for node in self.nodes:
            await node.wire.close()

    async def report(self, name: str, rank: int) -> Node:
        """Return a node of the pilot that has reported."""
        node = await self.connected(client_context(self.folder))
        await self.until(lambda: node.wire.send(node=name, rank=rank))
        return node

    async def until(self, act: Callable[[], object]) -> None:
        """Wait until the engine has processed the events up to now."""
        self.changed.clear()
        act()
        await asyncio.wait_for(self.changed.wait(), PATIENCE)


Scenario = Callable[[EngineHarness], Awaitable[None]]


@pytest.fixture
def run_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], None]:
    """Return a function that runs a test in an event loop."""
    monkeypatch.chdir(tmp_path)

    async def run_to_end(scenario: Scenario) -> None:
        harness = EngineHarness(tmp_path)
        await harness.start()
        try:
            await scenario(harness)
        finally:
            await harness.close()

    return lambda scenario: asyncio.run(run_to_end(scenario))


def test_nodes_count_once_the_first_node_has_reported(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: EngineHarness) -> None:
        await harness.report(OTHER, 1)
        assert harness.engine.nodes() == {}
        await harness.report(HEAD, 0)
        assert set(harness.engine.nodes()) == {HEAD, OTHER}

    run_scenario(scenario)


def test_a_task_is_sent_to_the_first_node_and_its_end_is_reported(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: EngineHarness) -> None:
        head = await harness.report(HEAD, 0)
        await harness.report(OTHER, 1)
        run = asyncio.ensure_future(harness.engine.run([OTHER], task()))
        message = await head.next_message()
        assert (message["do"], message["ranks"], message["node"]) == ("run", [1], OTHER)
        assert Task.from_dict(message["task"]) == task()
        await harness.engine.stop(OTHER, "a-1")
        assert await head.next_message() == {"do": "stop", "native_id": "a-1"}
        head.send_end(task(), End(code=7, why="cancel"))
        assert await asyncio.wait_for(run, PATIENCE) == End(code=7, why="cancel")

    run_scenario(scenario)


def test_a_job_of_several_nodes_knows_them_in_the_order_of_its_processes(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: EngineHarness) -> None:
        head = await harness.report(HEAD, 0)
        await harness.report(OTHER, 1)
        run = asyncio.ensure_future(harness.engine.run([OTHER, HEAD], task()))
        message = await head.next_message()
        assert (message["ranks"], message["node"]) == ([0, 1], HEAD)
        assert message["task"]["variables"]["JPSI_PILOT_NODES"] == "a b"
        head.send_end(task(), End(code=0))
        assert await asyncio.wait_for(run, PATIENCE) == End(code=0)

    run_scenario(scenario)


def test_the_loss_of_the_first_node_loses_all_runs(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: EngineHarness) -> None:
        head = await harness.report(HEAD, 0)
        await harness.report(OTHER, 1)
        run = asyncio.ensure_future(harness.engine.run([OTHER], task()))
        await head.next_message()
        await harness.until(lambda: asyncio.ensure_future(head.wire.close()))
        with pytest.raises(NodeLost):
            await asyncio.wait_for(run, PATIENCE)
        assert harness.engine.nodes() == {}

    run_scenario(scenario)


def test_a_node_that_flux_has_lost_gets_no_more_jobs(
    run_scenario: Callable[[Scenario], None],
) -> None:
    async def scenario(harness: EngineHarness) -> None:
        head = await harness.report(HEAD, 0)
        await harness.report(OTHER, 1)
        run = asyncio.ensure_future(harness.engine.run([OTHER], task()))
        await head.next_message()
        head.send_end(task(), None)
        with pytest.raises(NodeLost):
            await asyncio.wait_for(run, PATIENCE)
        assert set(harness.engine.nodes()) == {HEAD}

    run_scenario(scenario)


def test_a_connection_without_a_certificate_of_the_agent_is_refused(
    run_scenario: Callable[[Scenario], None], tmp_path: Path
) -> None:
    foreign = tmp_path / "stranger"
    foreign.mkdir()
    Authority().write(foreign, "7")
    foreign_certificate, no_certificate = client_context(foreign), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (foreign_certificate, no_certificate):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def scenario(harness: EngineHarness) -> None:
        for context in (foreign_certificate, no_certificate):
            node = await harness.connected(context)
            node.wire.send(node=HEAD, rank=0)
            with pytest.raises(StopAsyncIteration):
                await node.next_message()
        assert harness.engine.nodes() == {}

    run_scenario(scenario)


def test_a_node_can_report_only_as_one_of_its_own_pilot(run_scenario: Callable[[Scenario], None]) -> None:
    async def scenario(harness: EngineHarness) -> None:
        node = await harness.connected(client_context(harness.folder))
        node.wire.send(node="8/a.1", rank=0)
        with pytest.raises(StopAsyncIteration):
            await node.next_message()
        assert harness.engine.nodes() == {}

    run_scenario(scenario)
