"""The worker of dask.distributed on a node of a pilot.

python -m jpsi_pilot.dask.worker PILOT_FOLDER CORES PLACE

It exchanges messages with the scheduler in the stream that dask keeps between the two: one dask task for each
job would take as much time as a short job itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from ..network import dask_security
from ..node import NodeLog, NoDeviceError, Runs, log_path, watch_supervisor
from ..protocol import ALLOCATION, Share, Task
from .messages import ADDRESS, ENDED, HELD, HOLD, RELEASE, RUN, SETTINGS, STOP

# srun(1), INPUT and OUTPUT ENVIRONMENT VARIABLES: with these srun makes a step of the allocation, and the
# launcher knows that the pilot holds all of it.
_ALLOCATION_VARIABLES = (
    *(ALLOCATION, "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_STEP_ID", "SLURM_CONF"),
)
_DEATH_TIMEOUT = "60s"
_CLOSE_TIMEOUT = 2.0


class PilotWorker(Worker):
    """A worker that accepts only other parts of dask, and runs jobs."""

    def __init__(self, *arguments: Any, runs: Runs, nthreads: int, **options: Any) -> None:  # noqa: ANN401  dask's
        super().__init__(*arguments, nthreads=nthreads, **options)
        self._runs = runs
        # one thread for each core, as each job has at least one core
        self._threads = ThreadPoolExecutor(nthreads)
        self.stream_handlers[RUN] = self._handle_run
        self.stream_handlers[STOP] = runs.stop
        self.stream_handlers[HOLD] = self._handle_hold
        self.stream_handlers[RELEASE] = runs.release

    def start_http_server(self, *_: object, **__: object) -> None:
        """Do nothing: the pages that it would serve are open to everybody."""

    def _handle_run(self, number: int, task: dict[str, Any]) -> None:  # Any: as JSON has it
        self._threads.submit(self._run_task, number, Task.from_dict(task))

    def _handle_hold(self, number: int, native_id: str, gpus: int | None) -> None:
        try:
            held = self._runs.hold(native_id, gpus)
            share = Share(node=node_name(os.environ), variables=held, allocation=_allocation(os.environ))
        except NoDeviceError as e:
            share = Share(problem=f"the job could not be started on a node of it: {e}")
        self.batched_send({"op": HELD, "number": number, "share": share.to_dict()})

    def _run_task(self, number: int, task: Task) -> None:
        end = self._runs.run(task)
        message = {"op": ENDED, "number": number, "end": end.to_dict()}
        # without a connection this message is lost: the agent finds the end in the log
        self.loop.add_callback(self.batched_send, message)


def node_name(environment: Mapping[str, str]) -> str:
    """Return the name by which a launcher knows this node: Slurm's own if there is one, else the hostname.

    >>> node_name({"SLURMD_NODENAME": "n7"})
    'n7'
    """
    return environment.get("SLURMD_NODENAME") or socket.gethostname()


def _allocation(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: environment[name] for name in _ALLOCATION_VARIABLES if name in environment}


async def serve(folder: Path, cores: int, node: str) -> None:
    """Be a worker until the scheduler is gone, or the node supervisor is."""
    shutdown = asyncio.Event()
    runs = Runs(folder.parent.parent, NodeLog(log_path(folder, node)))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, runs.close)
    watch_supervisor(lambda: loop.call_soon_threadsafe(shutdown.set))
    dask.config.set(SETTINGS)
    with tempfile.TemporaryDirectory(prefix="jpsi-pilot-") as scratch:
        worker = PilotWorker(
            (folder / ADDRESS).read_text(encoding="ascii"),
            name=node,
            runs=runs,
            nthreads=cores,
            security=dask_security(folder),
            dashboard=False,
            local_directory=scratch,
            memory_limit=0,
            death_timeout=_DEATH_TIMEOUT,
        )
        await worker
        futures = [asyncio.ensure_future(_wait_finished(worker)), asyncio.ensure_future(shutdown.wait())]
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        # without a scheduler jobs run on to their ends, which the log records
        await asyncio.to_thread(runs.end_all if shutdown.is_set() else runs.drain)
        # a worker that was closing already may never return from this
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(worker.close(timeout=1, executor_wait=False), _CLOSE_TIMEOUT)
    # do not wait for dask's threads, or for the one that waits for the node supervisor
    os._exit(0)


async def _wait_finished(worker: Worker) -> None:
    await worker.finished()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
