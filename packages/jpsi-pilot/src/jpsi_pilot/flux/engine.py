"""The agent's side of the engine `flux`: sends tasks to the first node of each pilot's Flux instance.

The agent starts it from its `engine_pool`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from ..network import LONGEST, Authority, Message, Wire, address_of, server_context
from ..protocol import End, Equipment, NodeLost, PilotNode, Settings, Task, pilot_of

log = logging.getLogger(__name__)

#: The file in a pilot's directory that holds the address where the agent listens.
ADDRESS = "address"
_FOLDER = Path("flux")
_CLOSE_TIMEOUT = 5.0
# By this Slurm's launcher lets brokers find each other by PMI-2, which Flux speaks, whatever the site's
# default is.
_BROKER_ENVIRONMENT = {"SLURM_MPI_TYPE": "pmi2"}


@attrs.define(slots=True, eq=False)
class _Broker:
    """The broker of a node that has reported."""

    node: PilotNode
    #: Its rank in the instance; rank 0 takes the tasks.
    rank: int
    wire: Wire
    #: True if Flux has lost it, which its own connection may show only later.
    is_lost: bool = False


@attrs.define(slots=True, eq=False)
class _Run:
    """A run whose end has not been reported."""

    nodes: tuple[str, ...]
    end: asyncio.Future[End]


class FluxEngine:
    """The engine `flux`; see `jpsi_pilot.protocol.engine.PilotEngine`."""

    name = "flux"
    spans_nodes = True
    needs_launcher = False

    def __init__(self, changed: Callable[[], None], settings: Settings) -> None:
        self._changed = changed
        self._interface = settings.interface
        self._authority = Authority()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._address = ""
        self._brokers: dict[str, _Broker] = {}
        self._runs: dict[tuple[str, int], _Run] = {}

    async def start(self) -> None:
        """See `PilotEngine`."""
        _FOLDER.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240  it takes no time
        self._authority.write(_FOLDER, "agent")
        host = address_of(self._interface)
        self._server = await asyncio.start_server(
            self._accept, host, 0, ssl=server_context(_FOLDER), limit=LONGEST
        )
        self._address = f"{host} {self._server.sockets[0].getsockname()[1]}"

    def equip(self, folder: Path, settings: Settings) -> Equipment:
        """See `PilotEngine`."""
        self._authority.write(folder, folder.name)
        (folder / ADDRESS).write_text(self._address, encoding="ascii")
        shape = (settings.nodes, settings.gpus, settings.kill_delay)
        return Equipment(module=["jpsi_pilot.flux.node", *map(str, shape)], environment=_BROKER_ENVIRONMENT)

    def nodes(self) -> Mapping[str, PilotNode]:
        """Return the nodes of pilots whose node of rank 0, which takes the tasks, is connected."""
        connected_pilots = {broker.node.pilot for broker in self._brokers.values() if broker.rank == 0}
        return {
            name: broker.node
            for name, broker in self._brokers.items()
            if broker.node.pilot in connected_pilots and not broker.is_lost
        }

    async def run(self, nodes: Sequence[str], task: Task) -> End:
        """See `PilotEngine`."""
        if not set(nodes) <= self.nodes().keys():
            raise NodeLost(*nodes)
        brokers = sorted((self._brokers[name] for name in nodes), key=lambda broker: broker.rank)
        first_broker = self._first_broker(nodes[0])
        if len(brokers) > 1:
            names = " ".join(broker.node.hostname for broker in brokers)
            task = attrs.evolve(task, variables={**task.variables, "JPSI_PILOT_NODES": names})
        key = (task.native_id, task.restarts)
        run = self._runs[key] = _Run(tuple(nodes), asyncio.get_running_loop().create_future())
        try:
            first_broker.wire.send(
                do="run",
                task=task.to_dict(),
                node=brokers[0].node.name,
                ranks=[it.rank for it in brokers],
            )
            return await run.end
        finally:
            del self._runs[key]

    async def stop(self, node: str, native_id: str) -> None:
        """See `PilotEngine`."""
        self._first_broker(node).wire.send(do="stop", native_id=native_id)

    async def close(self) -> None:
        """See `PilotEngine`."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            # do not wait for a node that does not answer any more
            await asyncio.wait(self._connections, timeout=_CLOSE_TIMEOUT)

    def _first_broker(self, node: str) -> _Broker:
        for broker in self._brokers.values():
            if broker.rank == 0 and broker.node.pilot == pilot_of(node):
                return broker
        raise NodeLost(node)

    # Messages from nodes.

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.get_running_loop().create_task(self._serve_node(Wire(reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve_node(self, wire: Wire) -> None:
        broker: _Broker | None = None
        try:
            async for message in wire.messages():
                if broker is not None:
                    self._handle_message(message)
                elif (broker := self._register(message, wire)) is None:
                    break
        finally:
            if broker is not None:
                self._unregister(broker)
            await wire.close()

    def _register(self, message: Message, wire: Wire) -> _Broker | None:
        broker = _Broker(PilotNode(name=message["node"]), message["rank"], wire)
        if broker.node.pilot != wire.peer:
            log.warning(
                "the agent rejected a node of pilot %s that reported as %s", wire.peer, broker.node.name
            )
            return None
        self._brokers[broker.node.name] = broker
        self._changed()
        return broker

    def _unregister(self, broker: _Broker) -> None:
        """Remove a node; if it was the first of its instance, all runs of the pilot are lost."""
        if self._brokers.get(broker.node.name) is broker:
            del self._brokers[broker.node.name]
        if broker.rank == 0:
            self._fail_runs(
                [run for run in self._runs.values() if pilot_of(run.nodes[0]) == broker.node.pilot]
            )
        self._changed()

    def _handle_message(self, message: Message) -> None:
        run = self._runs.get((message["native_id"], message["restarts"]))
        if run is None or run.end.done():
            return
        if message["end"] is not None:
            run.end.set_result(End.from_dict(message["end"]))
            return
        for broker in self._brokers.values():
            broker.is_lost |= broker.node.name in run.nodes
        self._fail_runs([run])
        self._changed()

    @staticmethod
    def _fail_runs(runs: Sequence[_Run]) -> None:
        for run in runs:
            if not run.end.done():
                run.end.set_exception(NodeLost(*run.nodes))
