"""The agent's side of the engine `dask`: runs the scheduler, and sends tasks to the workers of pilots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import dask
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

from ..network import Authority, dask_security
from ..protocol import End, Equipment, Place, PlaceLost, Settings, Share, Task
from .messages import ADDRESS, ENDED, HELD, HOLD, RELEASE, RUN, SETTINGS, STOP

_FOLDER = Path("dask")
_CLOSE_TIMEOUT = 5.0
T = TypeVar("T")


class _PilotScheduler(Scheduler):
    """A scheduler that accepts only its workers, and passes on the ends of runs that they report."""

    def __init__(
        self,
        on_ended: Callable[[int, End], None],
        on_held: Callable[[int, Share], None],
        **options: Any,  # noqa: ANN401  dask's
    ) -> None:
        super().__init__(**options)
        self._ended = on_ended
        self._held = on_held
        self.stream_handlers[ENDED] = self._handle_ended
        self.stream_handlers[HELD] = self._handle_held

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing: the pages that it would serve are open to everybody."""

    def _handle_ended(self, number: int, end: dict[str, Any], worker: str) -> None:  # noqa: ARG002  Any: as JSON has it
        self._ended(number, End.from_dict(end))

    def _handle_held(self, number: int, share: dict[str, Any], worker: str) -> None:  # noqa: ARG002  as above
        self._held(number, Share.from_dict(share))


@attrs.define(slots=True)
class _Worker:
    """A worker that has reported."""

    place: Place
    address: str
    #: The numbers of the requests that it got and has not answered.
    requests: set[int] = attrs.field(factory=set)


class DaskEngine:
    """The engine `dask`; see `jpsi_pilot.protocol.engine.PilotEngine`."""

    name = "dask"
    #: The script of a job of several nodes runs on one of them; its launcher reaches the others.
    spans_nodes = True
    needs_launcher = True

    def __init__(self, changed: Callable[[], None], settings: Settings) -> None:
        self._changed = changed
        self._interface = settings.interface
        self._authority = Authority()
        self._workers: dict[str, _Worker] = {}
        self._ends: dict[int, asyncio.Future[End]] = {}
        self._shares: dict[int, asyncio.Future[Share]] = {}
        self._last_number = 0
        self._scheduler: Scheduler | None = None

    async def start(self) -> None:
        """See `PilotEngine`."""
        logging.getLogger("distributed").setLevel(logging.ERROR)
        dask.config.set(SETTINGS)
        _FOLDER.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240  it takes no time
        self._authority.write(_FOLDER, "agent")
        self._scheduler = await _PilotScheduler(
            self.resolve_run,
            self.resolve_hold,
            protocol="tls",
            interface=self._interface,
            security=dask_security(_FOLDER),
            dashboard=False,
        )
        self._scheduler.add_plugin(_Listener(self))

    def equip(self, folder: Path, settings: Settings) -> Equipment:  # noqa: ARG002  its workers need none
        """See `PilotEngine`."""
        assert self._scheduler is not None  # noqa: S101  it was started
        self._authority.write(folder, folder.name)
        (folder / ADDRESS).write_text(self._scheduler.address, encoding="ascii")
        return Equipment(module=["jpsi_pilot.dask.worker"])

    def places(self) -> Mapping[str, Place]:
        """See `PilotEngine`."""
        return {name: worker.place for name, worker in self._workers.items()}

    async def run(self, places: Sequence[str], task: Task) -> End:
        """Run a task; on several places the script runs on the first, and all reserve GPUs for it."""
        if len(places) == 1:
            return await self._run(places[0], task)
        # if this is cancelled, the agent ends and jobs run on: their GPUs stay reserved
        try:
            end = await self._run_on_several_places(places, task)
        except PlaceLost:
            self._release(places, task)
            raise
        self._release(places, task)
        return end

    async def _run_on_several_places(self, places: Sequence[str], task: Task) -> End:
        replies = await asyncio.gather(*(self._hold(it, task) for it in places), return_exceptions=True)
        shares: list[Share] = []
        for it in replies:
            if isinstance(it, BaseException):
                raise it
            if it.problem:
                return End(code=None, why="unable", message=it.problem)
            shares.append(it)
        return await self._run(places[0], _with_nodes(task, shares))

    def _release(self, places: Sequence[str], task: Task) -> None:
        for worker in (self._workers[it] for it in places if it in self._workers):
            self._send(worker, {"op": RELEASE, "native_id": task.native_id})

    async def _run(self, place: str, task: Task) -> End:
        # dask sends messages of about the same time as one
        return await self._request(place, self._ends, {"op": RUN, "task": task.to_dict()})

    async def _hold(self, place: str, task: Task) -> Share:
        message = {"op": HOLD, "native_id": task.native_id, "gpus": task.gpus}
        return await self._request(place, self._shares, message)

    async def _request(self, place: str, pending: dict[int, asyncio.Future[T]], message: dict[str, Any]) -> T:
        """Send a worker a message with a number, and return the worker's answer."""
        worker = self._get_worker(place)
        self._last_number += 1
        number = self._last_number
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        pending[number] = answer
        worker.requests.add(number)
        self._send(worker, {**message, "number": number})
        try:
            return await answer
        finally:
            del pending[number]
            worker.requests.discard(number)

    async def stop(self, place: str, native_id: str) -> None:
        """See `PilotEngine`."""
        self._send(self._get_worker(place), {"op": STOP, "native_id": native_id})

    async def close(self) -> None:
        """See `PilotEngine`."""
        if self._scheduler is not None:
            # do not wait for a worker that does not answer any more
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._scheduler.close(), _CLOSE_TIMEOUT)

    def _get_worker(self, place: str) -> _Worker:
        try:
            return self._workers[place]
        except KeyError:
            raise PlaceLost(place) from None

    def _send(self, worker: _Worker, message: dict[str, Any]) -> None:
        assert self._scheduler is not None  # noqa: S101  a worker has reported to it
        self._scheduler.worker_send(worker.address, message)

    # Called by the scheduler.

    def add_worker(self, name: str, address: str) -> None:
        """Add a worker that has reported; its name is that of its place."""
        self._workers[name] = _Worker(Place(name=name), address)
        self._changed()

    def remove_worker(self, address: str) -> None:
        """Remove a worker; the runs there may have ended or not."""
        for name, it in list(self._workers.items()):
            if it.address == address:
                del self._workers[name]
                for number in it.requests:
                    self._fail_request(number)
        self._changed()

    def resolve_run(self, number: int, end: End) -> None:
        """Resolve the run of this number."""
        if number in self._ends and not self._ends[number].done():
            self._ends[number].set_result(end)

    def resolve_hold(self, number: int, share: Share) -> None:
        """Resolve the request of this number for GPUs."""
        if number in self._shares and not self._shares[number].done():
            self._shares[number].set_result(share)

    def _fail_request(self, number: int) -> None:
        """Fail the request of this number, as its worker cannot answer any more."""
        for pending in (self._ends.get(number), self._shares.get(number)):
            if pending is not None and not pending.done():
                pending.set_exception(PlaceLost(number))


def _with_nodes(task: Task, shares: Sequence[Share]) -> Task:
    """Return a task that finds its nodes, and its GPUs on each of them."""
    variables = {**shares[0].allocation, "JPSI_PILOT_NODES": " ".join(it.node for it in shares)}
    if task.gpus is not None:
        lines = [f"{it.node} {name}={value}" for it in shares for name, value in it.variables.items()]
        variables["JPSI_PILOT_DEVICES"] = "\n".join(lines)
    return attrs.evolve(task, variables={**task.variables, **variables}, gpus=None)


class _Listener(SchedulerPlugin):
    """A plugin by which the scheduler reports workers that come and go."""

    name = "jpsi"

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """See `DaskEngine.add_worker`."""
        self._engine.add_worker(str(scheduler.workers[worker].name), worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: object) -> None:  # noqa: ARG002  as it is called
        """See `DaskEngine.remove_worker`."""
        self._engine.remove_worker(worker)
