"""The messages between the scheduler in the agent and its workers on nodes, and dask settings of both.

`dask.engine` and `dask.worker` exchange them to run jobs, and to reserve GPUs for jobs of several nodes.
"""

from __future__ import annotations

#: The file in a pilot's directory that holds the address of the scheduler.
ADDRESS = "address"
#: To a worker: run a task, which has a number; end the run of a job.
RUN, STOP = "jpsi-run", "jpsi-stop"
#: To a worker, about a job whose script runs on another node: reserve GPUs for it; the job is over.
HOLD, RELEASE = "jpsi-hold", "jpsi-release"
#: From a worker: how the run of this number has ended; what it reserved for the request of this number.
ENDED, HELD = "jpsi-ended", "jpsi-held"
#: Settings that let dask measure itself rarely: by default it does so a hundred times a second, without use.
SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
