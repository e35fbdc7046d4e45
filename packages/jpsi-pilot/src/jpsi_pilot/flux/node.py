"""A node of a pilot whose engine is Flux: runs a broker, and keeps a connection to the agent.

python -m jpsi_pilot.flux.node NODES GPUS KILL_DELAY PILOT_FOLDER CORES PLACE

The node of the first broker takes the tasks of all nodes. The instance ends when the agent is gone and no job
runs in it any more, and when the pilot is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from ..flux_installation import flux_problem
from ..network import LONGEST, Wire, calling
from ..node import NodeLog, log_of
from ..protocol import End, Task
from .engine import ADDRESS
from .instance import Instance, Shape
from .jobs import FluxJobs

# The name of the broker in the node's log.
_BROKER = "flux"
# The time that the instance has to end its jobs when the pilot is cancelled, in seconds; the node supervisor
# waits a second longer.
_ENDING = 2.0
_FIRST = 0


class _UnfitError(Exception):
    """The instance is not the one that the pilot needs."""


async def serve(shape: Shape, folder: Path, place: str) -> str:
    """Be a node until the instance has ended; return the problem, or nothing if the pilot was cancelled."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    # a daemon thread: the process does not wait for it at its end
    threading.Thread(
        target=_wait_for_supervisor, args=(lambda: loop.call_soon_threadsafe(told.set),), daemon=True
    ).start()
    if problem := await asyncio.to_thread(flux_problem):
        return problem
    log = NodeLog(log_of(folder, place))
    with tempfile.TemporaryDirectory(prefix="jpsi-flux-") as scratch:
        instance = await Instance.start(shape, Path(scratch))
        # the node supervisor reads this, and ends what a killed broker leaves behind
        log.begun(_BROKER, 0, instance.pid)
        over = asyncio.ensure_future(instance.ended())
        part = asyncio.ensure_future(_take_part(instance, shape, folder, place))
        waits = [over, part, asyncio.ensure_future(told.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        problem = _problem(over, part)
        part.cancel()
        instance.end()
        await asyncio.wait([over], timeout=_ENDING if told.is_set() else None)
    return "" if told.is_set() else problem


def _problem(over: asyncio.Future[int], part: asyncio.Future[None]) -> str:
    if part.done() and part.exception() is not None:
        return str(part.exception())
    return f"the broker of Flux has ended with {over.result()}" if over.done() and over.result() else ""


async def _take_part(instance: Instance, shape: Shape, folder: Path, place: str) -> None:
    """Report to the agent; return when the agent is gone and nothing runs any more.

    Raises:
        OSError: the agent cannot be reached.
    """
    up = await instance.up()
    if up.size != shape.nodes:
        msg = (
            f"Flux has made one instance of {up.size} and not of {shape.nodes} nodes: the launcher of the "
            "pilot does not let its processes find each other by PMI, as flux-start(1) demands it"
        )
        raise _UnfitError(msg)
    host, port = (folder / ADDRESS).read_text(encoding="ascii").split()
    reader, writer = await asyncio.open_connection(host, int(port), ssl=calling(folder), limit=LONGEST)
    wire = Wire(reader, writer)
    if up.rank == _FIRST:
        await _take_tasks(wire, instance, folder, place)
        return
    wire.say(place=place, rank=up.rank)
    async for _ in wire.heard():
        pass
    # the first broker ends what runs on this node
    await instance.ended()


async def _take_tasks(wire: Wire, instance: Instance, folder: Path, place: str) -> None:
    def tell(task: Task, end: End | None) -> None:
        plain = None if end is None else end.plain()
        wire.say(native_id=task.native_id, restarts=task.restarts, end=plain)

    os.environ["FLUX_URI"] = instance.uri
    jobs = FluxJobs(folder, place, tell)
    try:
        wire.say(place=place, rank=_FIRST)
        async for message in wire.heard():
            if message["do"] == "run":
                jobs.run(Task.of(message["task"]), message["place"], message["ranks"])
            else:
                jobs.stop(message["native_id"])
        await jobs.drained()
    finally:
        jobs.close()


def _wait_for_supervisor(gone: Callable[[], object]) -> None:
    while sys.stdin.buffer.read(1):
        pass
    gone()


async def _be_a_node(shape: Shape, folder: Path, place: str) -> None:
    problem = await serve(shape, folder, place)
    if problem:
        sys.stderr.write(f"{problem}\n")
        sys.stderr.flush()
    # do not wait for a flux command that does not answer
    os._exit(int(bool(problem)))


if __name__ == "__main__":
    nodes, gpus, delay, own_folder, cores, own_place = sys.argv[1:]
    own_shape = Shape(nodes=int(nodes), cores=int(cores), gpus=int(gpus), kill_delay=float(delay))
    asyncio.run(_be_a_node(own_shape, Path(own_folder), own_place))
