"""Jobs of the executor `toy` whose files are elsewhere, and where they have them on either side."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jpsi import Job, JobExecutor, JobStatus
from jpsi.plugin import BatchConfig
from jpsi_testing import RemoteTransport

#: Seconds after which a test that waits has failed.
PATIENCE = 60.0
#: What the executor is configured by if a test wants nothing else.
CONFIG = BatchConfig(
    command_timeout=timedelta(seconds=10),
    shortest_interval=timedelta(seconds=0.1),
    longest_interval=timedelta(seconds=0.3),
    grace=timedelta(seconds=0.5),
    kill_delay=timedelta(seconds=0.5),
)


def executor_of(elsewhere: RemoteTransport, config: BatchConfig = CONFIG) -> JobExecutor:
    return JobExecutor.get_instance("toy", url=elsewhere.url, config=config)


def far_root(elsewhere: RemoteTransport) -> Path:
    """What a spool is over there."""
    (root,) = (elsewhere.home / ".local/state/jpsi/work").iterdir()
    return root


def mirror(state_home: Path) -> Path:
    """The spool here."""
    (root,) = (state_home / "jpsi/work").iterdir()
    return root


def end(job: Job) -> JobStatus:
    """How a job ends."""
    status = job.wait(PATIENCE)
    assert status is not None, f"{job!r} has not ended"
    return status
