"""What a job of a fake batch system is in the words of Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from jpsi_testing.fake import FakeJob, FakeState, Invocation

from .dependencies import NEVER
from .nodes import node_list, node_names

_WORDS = {
    FakeState.PENDING: "PENDING",
    FakeState.HELD: "PENDING",
    FakeState.RUNNING: "RUNNING",
    FakeState.COMPLETED: "COMPLETED",
    FakeState.FAILED: "FAILED",
    FakeState.CANCELLED: "CANCELLED",
    FakeState.TIMEOUT: "TIMEOUT",
    FakeState.NODE_FAIL: "NODE_FAIL",
    FakeState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
}
# By why the scheduler says that a job waits or has failed
_REASONS = {"resources": "Resources", "held": "JobHeldUser", "begin": "BeginTime", "node": "NodeDown"}
_ENDED = {
    FakeState.TIMEOUT: "TimeLimit",
    FakeState.NODE_FAIL: "NodeDown",
    FakeState.OUT_OF_MEMORY: "OutOfMemory",
}
# slurm_errno.h: ESLURMD_SETUP_ENVIRONMENT_ERROR and its neighbours, in place of a status as of wait(2)
_SETUP_ERROR = 4021
# src/common/slurm_protocol_defs.h: SIG_OOM
_OUT_OF_MEMORY = 253
# Slurm prints local time; whoever does not ask for another is shown that of a distant place.
_ELSEWHERE = timezone(timedelta(hours=5))


class Told(NamedTuple):
    """A job as Slurm tells of it."""

    state: str
    reason: str
    #: As of wait(2), or an error number of Slurm's.
    status: int
    nodes: str


def told(job: FakeJob, component: int = 0) -> Told:
    """What squeue and sacct say about a job now, or about a component of a heterogeneous one."""
    word = "COMPLETING" if job.ending is not None else _WORDS[job.state]
    return Told(word, _reason(job), _status(job), _nodes(job, component))


def moment(seconds: float | None, invocation: Invocation, unknown: str) -> str:
    """A time as a command prints it that was called like this."""
    if seconds is None:
        return unknown
    zone = UTC if invocation.environment.get("TZ") == "UTC0" else _ELSEWHERE
    return datetime.fromtimestamp(int(seconds), zone).replace(tzinfo=None).isoformat()


def _could_not_start(job: FakeJob) -> bool:
    return job.state is FakeState.FAILED and job.why.startswith("launch failed")


def _reason(job: FakeJob) -> str:
    if job.state is FakeState.PENDING:
        return _REASONS.get(job.why, job.why) or "None"
    if job.state is FakeState.HELD:
        return "JobHeldUser"
    if job.state is FakeState.FAILED:
        return "NonZeroExitCode" if job.exit_code else "JobLaunchFailure"
    return _ENDED.get(job.state, NEVER if job.why == NEVER else "None")


def _status(job: FakeJob) -> int:
    if _could_not_start(job):
        return _SETUP_ERROR
    if job.state is FakeState.OUT_OF_MEMORY:
        return _OUT_OF_MEMORY
    if not job.state.final or job.state is FakeState.NODE_FAIL:
        return 0
    return job.signal if job.signal is not None else (job.exit_code or 0) << 8


def _nodes(job: FakeJob, component: int) -> str:
    if job.started is None and not _could_not_start(job):
        return ""
    placed: Sequence[str] | None = job.attributes.get("placed")
    if placed is not None:
        return placed[component]
    return node_list(node_names(job.attributes.get("nodes", 1)))
