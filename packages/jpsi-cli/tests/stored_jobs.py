"""Stored jobs, made without running one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jpsi import Evidence, JobState, JobStatus, Reason
from jpsi_engine.job_store import Origin, StoredJob
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.history import JobHistory
from jpsi_engine.spool.job_records import JobRecord
from jpsi_engine.verdict.markers import Marker

#: The time of their submission.
THEN = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SLURM = Origin("slurm", "", Path("/work/slurm"))


def stored_job(
    job_id: str, name: str | None = None, native_id: str | None = "17", **fields: Any
) -> StoredJob:
    """Return a job of Slurm; `fields` are of `JobRecord` and its spec, and `submitted`, in seconds."""
    origin = fields.pop("origin", SLURM)
    submitted = THEN + timedelta(seconds=fields.pop("submitted", 0))
    executable = fields.pop("executable", "simulate")
    spec: dict[str, Any] = {"executable": executable, **({} if name is None else {"name": name})}
    if "environment" in fields:
        spec["environment"] = fields.pop("environment")
    attributes = {
        "custom_attributes": fields.pop("custom", None),
        "after": fields.pop("after", None),
        "duration": fields.pop("duration", None),
    }
    if any(attributes.values()):
        spec["attributes"] = attributes
    intent = {"time": submitted.isoformat(), "directory": "/home/me", "spec": spec}
    record = JobRecord(job_id=job_id, attempt=1, intent=intent, native_id=native_id, **fields)
    return StoredJob(origin, JobHistory(record, frozenset({99})))


def active_marker(job_id: str, seconds: float) -> Marker:
    """Return the marker of a job that began this long after its submission."""
    return Marker(job_id, 1, 0, "active", "", None, _time_ns(seconds), f"{job_id}.1.active")


def exit_marker(job_id: str, seconds: float) -> Marker:
    """Return the marker of a program that ended then, with an exit code after which Slurm may requeue it."""
    return Marker(job_id, 1, 0, "exit", "run", 99, _time_ns(seconds), f"{job_id}.1.exit.run.99")


def _time_ns(seconds: float) -> int:
    return int((THEN + timedelta(seconds=seconds)).timestamp() * 10**9)


def encoded_end(
    state: JobState, seconds: float, code: int | None = None, reason: Reason | None = None, message: str = ""
) -> dict[str, Any]:
    """Return the stored status of a job that ended this long after its submission."""
    return encode_status(
        JobStatus(
            state,
            time=THEN + timedelta(seconds=seconds),
            exit_code=code,
            reason=reason,
            message=message or None,
            evidence=Evidence.MARKER,
        )
    )
