"""The agent's side of the engine `flux`: sends tasks to the first node of each pilot's Flux instance."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from ..network import LONGEST, Authority, Message, Wire, address_of, server_context
from ..protocol import End, Equipment, Place, PlaceLost, Settings, Task, pilot_of

log = logging.getLogger(__name__)

#: The file in a pilot's directory that holds the address where the agent listens.
ADDRESS = "address"
_FOLDER = Path("flux")
_CLOSE_TIMEOUT = 5.0
# By this Slurm's launcher lets brokers find each other by PMI-2, which Flux speaks, whatever the site's
# default is.
_BROKER_ENVIRONMENT = {"SLURM_MPI_TYPE": "pmi2"}


@attrs.define(slots=True, eq=False)
class _Node:
    """A node that has reported."""

    place: Place
    #: The rank of its broker in the instance; rank 0 takes the tasks.
    rank: int
    wire: Wire
    #: True if Flux has lost it, which its own connection may show only later.
    is_lost: bool = False


@attrs.define(slots=True, eq=False)
class _Run:
    """A run whose end has not been reported."""

    places: tuple[str, ...]
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
        self._nodes: dict[str, _Node] = {}
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

    def places(self) -> Mapping[str, Place]:
        """Return the places of pilots whose node of rank 0, which takes the tasks, is connected."""
        connected_pilots = {node.place.pilot for node in self._nodes.values() if node.rank == 0}
        return {
            name: node.place
            for name, node in self._nodes.items()
            if node.place.pilot in connected_pilots and not node.is_lost
        }

    async def run(self, places: Sequence[str], task: Task) -> End:
        """See `PilotEngine`."""
        if not set(places) <= self.places().keys():
            raise PlaceLost(*places)
        nodes = sorted((self._nodes[name] for name in places), key=lambda node: node.rank)
        first_node = self._first_node(places[0])
        if len(nodes) > 1:
            names = " ".join(node.place.node for node in nodes)
            task = attrs.evolve(task, variables={**task.variables, "JPSI_PILOT_NODES": names})
        key = (task.native_id, task.restarts)
        run = self._runs[key] = _Run(tuple(places), asyncio.get_running_loop().create_future())
        try:
            first_node.wire.send(
                do="run", task=task.to_dict(), place=nodes[0].place.name, ranks=[node.rank for node in nodes]
            )
            return await run.end
        finally:
            del self._runs[key]

    async def stop(self, place: str, native_id: str) -> None:
        """See `PilotEngine`."""
        self._first_node(place).wire.send(do="stop", native_id=native_id)

    async def close(self) -> None:
        """See `PilotEngine`."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            # do not wait for a node that does not answer any more
            await asyncio.wait(self._connections, timeout=_CLOSE_TIMEOUT)

    def _first_node(self, place: str) -> _Node:
        for node in self._nodes.values():
            if node.rank == 0 and node.place.pilot == pilot_of(place):
                return node
        raise PlaceLost(place)

    # Messages from nodes.

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.get_running_loop().create_task(self._serve_node(Wire(reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve_node(self, wire: Wire) -> None:
        node: _Node | None = None
        try:
            async for message in wire.messages():
                if node is not None:
                    self._handle_message(message)
                elif (node := self._register(message, wire)) is None:
                    break
        finally:
            if node is not None:
                self._unregister(node)
            await wire.close()

    def _register(self, message: Message, wire: Wire) -> _Node | None:
        node = _Node(Place(name=message["place"]), message["rank"], wire)
        if node.place.pilot != wire.peer:
            log.warning(
                "the agent rejected a node of pilot %s that reported as %s", wire.peer, node.place.name
            )
            return None
        self._nodes[node.place.name] = node
        self._changed()
        return node

    def _unregister(self, node: _Node) -> None:
        """Remove a node; if it was the first of its instance, all runs of the pilot are lost."""
        if self._nodes.get(node.place.name) is node:
            del self._nodes[node.place.name]
        if node.rank == 0:
            self._fail_runs(
                [run for run in self._runs.values() if pilot_of(run.places[0]) == node.place.pilot]
            )
        self._changed()

    def _handle_message(self, message: Message) -> None:
        run = self._runs.get((message["native_id"], message["restarts"]))
        if run is None or run.end.done():
            return
        if message["end"] is not None:
            run.end.set_result(End.from_dict(message["end"]))
            return
        for node in self._nodes.values():
            node.is_lost |= node.place.name in run.places
        self._fail_runs([run])
        self._changed()

    @staticmethod
    def _fail_runs(runs: Sequence[_Run]) -> None:
        for run in runs:
            if not run.end.done():
                run.end.set_exception(PlaceLost(*run.places))
