"""What the scheduler in the agent and its workers on nodes tell each other, and how both are set up."""

from __future__ import annotations

#: The file in a pilot's folder that tells where the scheduler listens.
ADDRESS = "address"
#: What a worker is told: to run a task, which has a number, and to end the run of a job.
RUN, STOP = "jpsi-run", "jpsi-stop"
#: What it is told of a job whose script runs on another node: to keep GPUs for it, and that it is over.
HOLD, RELEASE = "jpsi-hold", "jpsi-release"
#: What it tells: how the run of this number has ended, and what it keeps for the one of this number.
ENDED, HELD = "jpsi-ended", "jpsi-held"
#: How rarely dask is to measure itself: by itself it does so a hundred times a second, for nobody here.
SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
