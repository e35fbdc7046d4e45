"""Maps jobs of the fake batch system to Slurm's words for states and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from jpsi_testing.fake import FakeJob, FakeState, Invocation

from .dependencies import NEVER
from .nodes import node_list, node_names

_STATES = {
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
# Slurm's words for reasons of the fake scheduler why a job is pending; other reasons are printed as they are
_REASONS = {"resources": "Resources", "held": "JobHeldUser", "begin": "BeginTime", "node": "NodeDown"}
_END_REASONS = {
    FakeState.TIMEOUT: "TimeLimit",
    FakeState.NODE_FAIL: "NodeDown",
    FakeState.OUT_OF_MEMORY: "OutOfMemory",
}
# slurm_errno.h: ESLURMD_SETUP_ENVIRONMENT_ERROR, which takes the place of a wait(2) status
_SETUP_ERROR = 4021
# src/common/slurm_protocol_defs.h: SIG_OOM
_OUT_OF_MEMORY = 253
# Slurm prints local times; the fake's zone is not UTC, unless the command's environment has TZ=UTC0.
_LOCAL_ZONE = timezone(timedelta(hours=5))


class JobFields(NamedTuple):
    """A job in the words of Slurm."""

    state: str
    reason: str
    #: A wait(2) status, or one of Slurm's error numbers.
    status: int
    nodes: str


def job_fields(job: FakeJob, component: int = 0) -> JobFields:
    """Return the current state of a job, or of a component of a heterogeneous one, as Slurm prints it."""
    word = "COMPLETING" if job.ending is not None else _STATES[job.state]
    return JobFields(word, _reason(job), _status(job), _nodes(job, component))


def format_time(seconds: float | None, invocation: Invocation, unknown: str) -> str:
    """Return a time as a command of this invocation prints it."""
    if seconds is None:
        return unknown
    zone = UTC if invocation.environment.get("TZ") == "UTC0" else _LOCAL_ZONE
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
    return _END_REASONS.get(job.state, NEVER if job.why == NEVER else "None")


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
