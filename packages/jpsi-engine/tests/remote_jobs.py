"""Jobs of the executor `toy` on a remote host, and the folders of their spools on both hosts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import Job, JobExecutor, JobStatus
from jpsi.plugin import BatchConfig
from jpsi_testing import RemoteTransport
from toys import QUICK

#: Seconds after which a waiting test fails.
PATIENCE = 60.0
#: The configuration of the executor if a test needs no other.
CONFIG = attrs.evolve(QUICK, command_timeout=timedelta(seconds=10), kill_delay=timedelta(seconds=0.5))


def executor_of(remote_transport: RemoteTransport, config: BatchConfig = CONFIG) -> JobExecutor:
    return JobExecutor.get_instance("toy", url=remote_transport.url, config=config)


def remote_root(remote_transport: RemoteTransport) -> Path:
    """Return the root of the remote spool."""
    (root,) = (remote_transport.home / ".local/state/jpsi/work").iterdir()
    return root


def mirror(state_home: Path) -> Path:
    """Return the root of the local mirror of the spool."""
    (root,) = (state_home / "jpsi/work").iterdir()
    return root


def end(job: Job) -> JobStatus:
    """Wait for the end of a job, and return its final status."""
    status = job.wait(PATIENCE)
    assert status is not None, f"{job!r} has not ended"
    return status
