"""The agent's side of the engine `dask`: runs the scheduler, and sends tasks to the workers of pilots.

The agent starts it from its `engine_pool`.
"""

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

from ..network import Authority, dask_security
from ..protocol import End, Equipment, NodeLost, PilotNode, Settings, Share, Task
from .messages import ADDRESS, ENDED, HELD, HOLD, RELEASE, RUN, SETTINGS, STOP

_FOLDER = Path("dask")
_CLOSE_TIMEOUT = 5.0
# The least time, in seconds, between two messages to a worker, each with all tasks since the last. dask has
# 5 ms, for which free cores would wait.
_SEND_INTERVAL = 0.001


class _PilotScheduler(Scheduler):
    """A scheduler that accepts only its workers, and passes on their answers to requests."""

    def __init__(
        self,
        on_answer: Callable[[int, object], None],
        **options: Any,  # noqa: ANN401  dask's
    ) -> None:
        super().__init__(**options)
        self._on_answer = on_answer
        self.stream_handlers[ENDED] = self._handle_ended
        self.stream_handlers[HELD] = self._handle_held

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing: the pages that it would serve are open to everybody."""

    def _handle_ended(self, number: int, end: dict[str, Any], worker: str) -> None:  # noqa: ARG002  Any: as JSON has it
        self._on_answer(number, End.from_dict(end))

    def _handle_held(self, number: int, share: dict[str, Any], worker: str) -> None:  # noqa: ARG002  as above
        self._on_answer(number, Share.from_dict(share))


@attrs.define(slots=True)
class _Worker:
    """A worker that has reported."""

    node: PilotNode
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
        # the requests to workers by number: the end of a run, or the share of a node
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._last_number = 0
        self._scheduler: Scheduler | None = None

    async def start(self) -> None:
        """See `PilotEngine`."""
        logging.getLogger("distributed").setLevel(logging.ERROR)
        dask.config.set(SETTINGS)
        _FOLDER.mkdir(mode=0o700, exist_ok=True)  # noqa: ASYNC240  it takes no time
        self._authority.write(_FOLDER, "agent")
        self._scheduler = await _PilotScheduler(
            self.resolve,
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

    def nodes(self) -> Mapping[str, PilotNode]:
        """See `PilotEngine`."""
        return {name: worker.node for name, worker in self._workers.items()}

    async def run(self, nodes: Sequence[str], task: Task) -> End:
        """Run a task; on several nodes the script runs on the first, and all reserve GPUs for it."""
        if len(nodes) == 1:
            return await self._run(nodes[0], task)
        # if this is cancelled, the agent ends and jobs run on: their GPUs stay reserved
        try:
            end = await self._run_on_several_nodes(nodes, task)
        except NodeLost:
            self._release(nodes, task)
            raise
        self._release(nodes, task)
        return end

    async def _run_on_several_nodes(self, nodes: Sequence[str], task: Task) -> End:
        hold = {"op": HOLD, "native_id": task.native_id, "gpus": task.gpus}
        replies = await asyncio.gather(*(self._request(it, hold) for it in nodes), return_exceptions=True)
        shares: list[Share] = []
        for it in replies:
            if isinstance(it, BaseException):
                raise it
            if it.problem:
                return End(code=None, why="unable", message=it.problem)
            shares.append(it)
        return await self._run(nodes[0], _with_nodes(task, shares))

    def _release(self, nodes: Sequence[str], task: Task) -> None:
        for worker in (self._workers[it] for it in nodes if it in self._workers):
            self._send(worker, {"op": RELEASE, "native_id": task.native_id})

    async def _run(self, node: str, task: Task) -> End:
        # dask sends messages of about the same time as one
        end: End = await self._request(node, {"op": RUN, "task": task.to_dict()})
        return end

    async def _request(self, node: str, message: dict[str, Any]) -> Any:  # noqa: ANN401  as the message has it
        """Send a worker a message with a number, and return the worker's answer."""
        worker = self._get_worker(node)
        self._last_number += 1
        number = self._last_number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        worker.requests.add(number)
        self._send(worker, {**message, "number": number})
        try:
            return await answer
        finally:
            del self._answers[number]
            worker.requests.discard(number)

    async def stop(self, node: str, native_id: str) -> None:
        """See `PilotEngine`."""
        self._send(self._get_worker(node), {"op": STOP, "native_id": native_id})

    async def close(self) -> None:
        """See `PilotEngine`."""
        if self._scheduler is not None:
            # do not wait for a worker that does not answer any more
            with contextlib.suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._scheduler.close(), _CLOSE_TIMEOUT)

    def _get_worker(self, node: str) -> _Worker:
        try:
            return self._workers[node]
        except KeyError:
            raise NodeLost(node) from None

    def _send(self, worker: _Worker, message: dict[str, Any]) -> None:
        assert self._scheduler is not None  # noqa: S101  a worker has reported to it
        self._scheduler.worker_send(worker.address, message)

    # Called by the scheduler.

    def add_worker(self, name: str, address: str) -> None:
        """Add a worker that has reported; its name is that of its node."""
        self._workers[name] = _Worker(PilotNode(name=name), address)
        self._changed()

    def remove_worker(self, address: str) -> None:
        """Remove a worker; the runs there may have ended or not, and it answers no requests any more."""
        for name, it in list(self._workers.items()):
            if it.address == address:
                del self._workers[name]
                for number in it.requests:
                    if not self._answers[number].done():
                        self._answers[number].set_exception(NodeLost(number))
        self._changed()

    def resolve(self, number: int, answer: object) -> None:
        """Resolve the request of this number."""
        if number in self._answers and not self._answers[number].done():
            self._answers[number].set_result(answer)


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
        scheduler.stream_comms[worker].interval = _SEND_INTERVAL
        self._engine.add_worker(str(scheduler.workers[worker].name), worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: object) -> None:  # noqa: ARG002  as it is called
        """See `DaskEngine.remove_worker`."""
        self._engine.remove_worker(worker)
