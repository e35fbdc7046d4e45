"""Maps jobs of the fake batch system to the fields of `flux jobs --json`.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jpsi_testing.fake import FakeJob, FakeState

from .native_ids import format_id

#: The reasons of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"
_RESULTS = {
    FakeState.COMPLETED: "COMPLETED",
    FakeState.FAILED: "FAILED",
    FakeState.CANCELLED: "CANCELED",
    FakeState.TIMEOUT: "TIMEOUT",
    FakeState.NODE_FAIL: "FAILED",
    FakeState.OUT_OF_MEMORY: "FAILED",
}
_SIGNAL_BASE = 128
_NEVER_RAN = -128
# the signal that the job shell sends to a job that has exceeded its time limit
_ALARM = 14


def job_fields(job: FakeJob) -> dict[str, Any]:
    """Return the current fields of a job; keys are absent until they apply."""
    state = _state(job)
    fields = {
        "duration": job.time_limit or 0.0,
        "name": job.attributes.get("name", job.name),
        "cwd": job.directory,
        "queue": job.queue,
        "ntasks": 1,
        "priority": 0 if job.state is FakeState.HELD else 16,
        "id": int(job.native_id),
        "t_submit": job.submitted,
        "t_depend": job.submitted,
        "state": state,
        "username": job.owner,
        "userid": os.getuid(),
        "urgency": 0 if job.state is FakeState.HELD else 16,
        "status": _RESULTS[job.state] if job.state.final else state,
        "dependencies": ["after-success=fAAAAAA"] if job.why == WAITS else [],
        "jobid": format_id(job.native_id),
        "annotations": {},
        "exception": _exception(job),
    }
    return {**fields, **_run(job), **_end(job)}


def _state(job: FakeJob) -> str:
    if job.state.final:
        return "INACTIVE"
    if job.ending is not None:
        return "CLEANUP"
    if job.state is FakeState.RUNNING:
        return "RUN"
    return "DEPEND" if job.why == WAITS else "SCHED"


def _run(job: FakeJob) -> Mapping[str, Any]:
    if job.started is None:
        return {}
    nodes = "node[0-1]" if job.attributes.get("nodes", 1) > 1 else "node0"
    return {"t_run": job.started, "nodelist": nodes, "ranks": "0"}


def _end(job: FakeJob) -> Mapping[str, Any]:
    if not job.state.final:
        return {}
    result = _RESULTS[job.state]
    status = _wait_status(job)
    fields: dict[str, Any] = {"t_cleanup": job.ended, "t_inactive": job.ended, "result": result}
    fields["success"] = result == "COMPLETED"
    if status is None:
        fields["returncode"] = _NEVER_RAN if result == "CANCELED" else 1
    else:
        fields["waitstatus"] = status
        fields["returncode"] = status >> 8
    return fields


def _wait_status(job: FakeJob) -> int | None:
    """Return the wait status of the job shell, which turns signals into exit codes."""
    if job.started is None:
        return None
    if job.state is FakeState.NODE_FAIL or job.failed_to_start:
        return 1 << 8
    if job.state is FakeState.TIMEOUT:
        return 1 << 8 if job.exit_code == 0 else _SIGNAL_BASE + _ALARM << 8
    return job.shell_code << 8


# The type and note of the exceptions with which Flux ends jobs
_EXCEPTIONS: Mapping[FakeState, tuple[str, str]] = {
    FakeState.CANCELLED: ("cancel", ""),
    FakeState.TIMEOUT: ("timeout", "resource allocation expired"),
    FakeState.NODE_FAIL: ("exec", "node failure on node0 (rank 0)"),
}
_NEVER_SATISFIED = ("dependency", "dependency after-success=fAAAAAA can never be satisfied")


def _exception(job: FakeJob) -> Mapping[str, Any]:
    # While a job is being cleaned up, Flux does not print the exception that ended it.
    raised = _EXCEPTIONS.get(job.state) if job.state.final else None
    if job.why == NEVER:
        raised = _NEVER_SATISFIED
    elif job.failed_to_start:
        raised = ("exec", "shell_init: No such file or directory")
    if raised is None:
        return {"occurred": False}
    kind, note = raised
    return {"occurred": True, "severity": 0, "type": kind, "note": note}
