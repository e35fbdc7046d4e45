"""The engines that an agent has started: one for each kind of pilot.

The scheduling loop and the fleet get from it the engine that runs jobs in a pilot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs

from ..protocol import EngineMaker, NodeLost, PilotEngine, PilotNode, Settings


@attrs.define(slots=True, eq=False)
class EnginePool:
    """Engines by engine name and network interface; all methods run in one event loop."""

    #: Makes engines; it may take a while.
    _new_engine: EngineMaker
    #: Called whenever a node has come or gone.
    _changed: Callable[[], None]
    _engines: dict[tuple[str | None, str | None], PilotEngine] = attrs.field(init=False, factory=dict)
    _starting: asyncio.Lock = attrs.field(init=False, factory=asyncio.Lock)

    async def get_or_start(self, settings: Settings) -> PilotEngine:
        """Return the engine for pilots with these settings; start it if this is its first use.

        Raises:
            EngineMissing: there is no such engine.
            OSError: the engine cannot be started on this machine.
        """
        key = _engine_key(settings)
        async with self._starting:
            if key not in self._engines:
                engine = await asyncio.to_thread(self._new_engine, self._changed, settings)
                await engine.start()
                self._engines[key] = engine
        return self._engines[key]

    def get(self, settings: Settings) -> PilotEngine:
        """Return the engine for pilots with these settings.

        Raises:
            NodeLost: this agent never started that engine.
        """
        try:
            return self._engines[_engine_key(settings)]
        except KeyError:
            raise NodeLost(settings.engine) from None

    def nodes(self) -> dict[str, PilotNode]:
        """Return the nodes of all engines, by name."""
        return {name: node for engine in self._engines.values() for name, node in engine.nodes().items()}

    async def close(self) -> None:
        """Close all engines; their jobs run on."""
        for engine in self._engines.values():
            await engine.close()


def _engine_key(settings: Settings) -> tuple[str | None, str | None]:
    return settings.engine, settings.interface
