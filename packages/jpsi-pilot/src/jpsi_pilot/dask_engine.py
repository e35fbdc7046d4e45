"""The engine `dask`: dask.distributed, its scheduler in the agent, a worker on each node of a pilot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import dask
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

from .certificates import Authority, security
from .dask_worker import ADDRESS, ENDED, RUN, SETTINGS, STOP
from .engines import Equipment, Place, PlaceLost
from .values import End, Settings, Task

_FOLDER = Path("dask")
_CLOSING = 5.0


class _PilotScheduler(Scheduler):
    """A scheduler that listens for nothing but its workers, and is told by them how runs have ended."""

    def __init__(self, ended: Callable[[int, End], None], **options: Any) -> None:  # noqa: ANN401  dask's
        super().__init__(**options)
        self._ended = ended
        self.stream_handlers[ENDED] = self._hear

    def start_http_server(self, *_: object, **__: object) -> None:
        """Nothing: what it would serve is open to everybody."""

    def _hear(self, number: int, end: dict[str, Any], worker: str) -> None:  # noqa: ARG002  Any: as JSON has it
        self._ended(number, End.of(end))


@attrs.define(slots=True)
class _Worker:
    """A worker that has reported."""

    place: Place
    address: str
    #: The numbers of the runs that it was given and has not ended.
    runs: set[int] = attrs.field(factory=set)


class DaskEngine:
    """See `jpsi_pilot.engines.PilotEngine`."""

    name = "dask"
    #: A worker runs what it gets by itself.
    spans_nodes = False

    def __init__(self, changed: Callable[[], None], settings: Settings) -> None:
        self._changed = changed
        self._interface = settings.interface
        self._authority = Authority()
        self._workers: dict[str, _Worker] = {}
        self._ends: dict[int, asyncio.Future[End]] = {}
        self._count = 0
        self._scheduler: Scheduler | None = None

    async def start(self) -> None:
        """See `PilotEngine`."""
        logging.getLogger("distributed").setLevel(logging.ERROR)
        dask.config.set(SETTINGS)
        _FOLDER.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240  it takes no time
        self._authority.write(_FOLDER, "agent")
        self._scheduler = await _PilotScheduler(
            self.ended, protocol="tls", interface=self._interface, security=security(_FOLDER), dashboard=False
        )
        self._scheduler.add_plugin(_Listener(self))

    def equip(self, folder: Path, settings: Settings) -> Equipment:  # noqa: ARG002  its workers need none
        """See `PilotEngine`."""
        assert self._scheduler is not None  # noqa: S101  it was started
        self._authority.write(folder, folder.name)
        (folder / ADDRESS).write_text(self._scheduler.address, encoding="ascii")
        return Equipment(module=["jpsi_pilot.dask_worker"])

    def places(self) -> Mapping[str, Place]:
        """See `PilotEngine`."""
        return {name: worker.place for name, worker in self._workers.items()}

    async def run(self, places: Sequence[str], task: Task) -> End:
        """See `PilotEngine`."""
        worker = self._worker(places[0])
        self._count += 1
        number = self._count
        ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._ends[number] = ended
        worker.runs.add(number)
        # what is sent at about the same time is one message
        self._send(worker, {"op": RUN, "number": number, "task": task.plain()})
        try:
            return await ended
        finally:
            del self._ends[number]
            worker.runs.discard(number)

    async def stop(self, place: str, native_id: str) -> None:
        """See `PilotEngine`."""
        self._send(self._worker(place), {"op": STOP, "native_id": native_id})

    async def close(self) -> None:
        """See `PilotEngine`."""
        if self._scheduler is not None:
            # a worker that does not answer any more keeps nobody
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._scheduler.close(), _CLOSING)

    def _worker(self, place: str) -> _Worker:
        try:
            return self._workers[place]
        except KeyError:
            raise PlaceLost(place) from None

    def _send(self, worker: _Worker, message: dict[str, Any]) -> None:
        assert self._scheduler is not None  # noqa: S101  a worker has reported to it
        self._scheduler.worker_send(worker.address, message)

    # What the scheduler tells.

    def come(self, name: str, address: str) -> None:
        """A worker has reported; its name is that of its place."""
        self._workers[name] = _Worker(Place(name=name), address)
        self._changed()

    def gone(self, address: str) -> None:
        """A worker is gone, and what ran there may have ended or not."""
        for name, it in list(self._workers.items()):
            if it.address == address:
                del self._workers[name]
                for number in it.runs:
                    self._lost(number)
        self._changed()

    def ended(self, number: int, end: End) -> None:
        """A run has ended."""
        if number in self._ends and not self._ends[number].done():
            self._ends[number].set_result(end)

    def _lost(self, number: int) -> None:
        """Nobody will be told how a run ends."""
        if number in self._ends and not self._ends[number].done():
            self._ends[number].set_exception(PlaceLost(number))


class _Listener(SchedulerPlugin):
    """Hears from the scheduler what becomes of workers."""

    name = "jpsi"

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """See `DaskEngine.come`."""
        self._engine.come(str(scheduler.workers[worker].name), worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: object) -> None:  # noqa: ARG002  as it is called
        """See `DaskEngine.gone`."""
        self._engine.gone(worker)
