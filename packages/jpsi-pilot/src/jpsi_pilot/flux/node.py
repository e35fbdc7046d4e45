"""A node of a pilot whose engine is Flux: runs a broker, and keeps a connection to the agent.

python -m jpsi_pilot.flux.node NODES GPUS KILL_DELAY PILOT_FOLDER CORES NODE

The node of the first broker takes the tasks of all nodes. The instance ends when the agent is gone and no job
runs in it any more, and when the pilot is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from ..flux_installation import flux_problem
from ..network import LONGEST, Wire, client_context
from ..node import NodeLog, ended_nodes, log_path, watch_supervisor
from ..protocol import End, Task
from .engine import ADDRESS
from .instance import RUN_DIRECTORY, Instance, InstanceStatus, Shape
from .jobs import FluxJobs

# The name of the broker in the node's log.
_BROKER = "flux"
# The time that the instance has to end its jobs when the pilot is cancelled, in seconds; the node supervisor
# waits a second longer.
_END_TIMEOUT = 2.0
_FIRST_RANK = 0
# The interval, in seconds, at which a node whose instance is not up looks for nodes that have ended.
_NODE_CHECK_INTERVAL = 5.0
# The path of the broker's directory, which has sockets, is at most 96 bytes long. The directory is inside a
# temporary one, to whose prefix Python adds eight characters.
_SCRATCH_PREFIX = "jpsi-flux-"
_LONGEST_PARENT = 96 - len(f"/{_SCRATCH_PREFIX}12345678/{RUN_DIRECTORY}")
_SHORT_PARENT = "/tmp"  # noqa: S108  a private directory is made there


class UnfitError(Exception):
    """The instance is not the one that the pilot needs."""


def scratch_parent(preferred: str) -> str:
    """Return the directory for temporary ones: the preferred one, unless its path is too long for Flux.

    >>> scratch_parent("/scratch/me"), scratch_parent("/scratch/" + 80 * "x")
    ('/scratch/me', '/tmp')
    """
    return preferred if len(os.fsencode(preferred)) <= _LONGEST_PARENT else _SHORT_PARENT


async def serve(shape: Shape, folder: Path, node: str) -> str:
    """Be a node until the instance has ended; return the problem, or nothing if the pilot was cancelled."""
    shutdown = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, shutdown.set)
    watch_supervisor(lambda: loop.call_soon_threadsafe(shutdown.set))
    if problem := await asyncio.to_thread(flux_problem):
        return problem
    log = NodeLog(log_path(folder, node))
    with tempfile.TemporaryDirectory(
        prefix=_SCRATCH_PREFIX, dir=scratch_parent(tempfile.gettempdir())
    ) as scratch:
        instance = await Instance.start(shape, Path(scratch))
        # the node supervisor reads this, and ends what a killed broker leaves behind
        log.record_begun(_BROKER, 0, instance.pid)
        broker_exit = asyncio.ensure_future(instance.wait())
        agent_part = asyncio.ensure_future(_serve_agent(instance, shape, folder, node))
        futures = [broker_exit, agent_part, asyncio.ensure_future(shutdown.wait())]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        problem = _find_problem(broker_exit, agent_part)
        agent_part.cancel()
        instance.terminate()
        # a broker that waits for others may not end by itself; the node supervisor kills what is left
        await asyncio.wait([broker_exit], timeout=_END_TIMEOUT if shutdown.is_set() or problem else None)
    return "" if shutdown.is_set() else problem


def _find_problem(broker_exit: asyncio.Future[int], agent_part: asyncio.Future[None]) -> str:
    if agent_part.done() and agent_part.exception() is not None:
        return str(agent_part.exception())
    return (
        f"the Flux broker exited with {broker_exit.result()}"
        if broker_exit.done() and broker_exit.result()
        else ""
    )


async def _serve_agent(instance: Instance, shape: Shape, folder: Path, node: str) -> None:
    """Report to the agent; return when the agent is gone and nothing runs any more.

    Raises:
        OSError: the agent cannot be reached.
    """
    status = await wait_until_up(instance, folder)
    if status.size != shape.nodes:
        raise UnfitError(
            f"Flux started an instance of {status.size} nodes instead of {shape.nodes}: the launcher of the "
            "pilot does not provide PMI, by which brokers find each other, as flux-start(1) requires"
        )
    host, port = (folder / ADDRESS).read_text(encoding="ascii").split()
    reader, writer = await asyncio.open_connection(host, int(port), ssl=client_context(folder), limit=LONGEST)
    wire = Wire(reader, writer)
    if status.rank == _FIRST_RANK:
        await _run_tasks(wire, instance, folder, node)
        return
    wire.send(node=node, rank=status.rank)
    async for _ in wire.messages():
        pass
    # the first broker ends what runs on this node
    await instance.wait()


async def wait_until_up(
    instance: Instance, folder: Path, interval: float = _NODE_CHECK_INTERVAL
) -> InstanceStatus:
    """Wait until the instance takes jobs.

    Args:
        instance: the instance.
        folder: the pilot's directory.
        interval: the time between two checks of the other nodes, in seconds.

    Raises:
        UnfitError: another node of the pilot has ended, for whose broker this one would wait for ever.
    """
    up = asyncio.ensure_future(instance.wait_until_up())
    try:
        while not up.done():
            await asyncio.wait([up], timeout=interval)
            if not up.done() and (ended := ended_nodes(folder)):
                msg = f"the Flux instance cannot start: node {', '.join(ended)} of the pilot has ended"
                raise UnfitError(msg)
    finally:
        up.cancel()
    return up.result()


async def _run_tasks(wire: Wire, instance: Instance, folder: Path, node: str) -> None:
    def report(task: Task, end: End | None) -> None:
        end_dict = None if end is None else end.to_dict()
        wire.send(native_id=task.native_id, restarts=task.restarts, end=end_dict)

    os.environ["FLUX_URI"] = instance.uri
    jobs = FluxJobs(folder, node, report)
    try:
        wire.send(node=node, rank=_FIRST_RANK)
        async for message in wire.messages():
            if message["do"] == "run":
                jobs.run(Task.from_dict(message["task"]), message["node"], message["ranks"])
            else:
                jobs.stop(message["native_id"])
        await jobs.drain()
    finally:
        jobs.close()


async def _run_node(shape: Shape, folder: Path, node: str) -> None:
    problem = await serve(shape, folder, node)
    if problem:
        sys.stderr.write(f"{problem}\n")
        sys.stderr.flush()
    # do not wait for a flux command that does not answer
    os._exit(int(bool(problem)))


if __name__ == "__main__":
    nodes, gpus, delay, folder_argument, cores, node_argument = sys.argv[1:]
    shape_argument = Shape(nodes=int(nodes), cores=int(cores), gpus=int(gpus), kill_delay=float(delay))
    asyncio.run(_run_node(shape_argument, Path(folder_argument), node_argument))
