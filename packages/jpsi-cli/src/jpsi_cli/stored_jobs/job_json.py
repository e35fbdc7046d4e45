"""Writes jobs on disk as JSON, for the option `--json` of `jpsi ls`, `show`, `wait` and `cancel`.

Scripts of users read it: keys may be added, never removed.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from ..output import status_json


def summary_json(job: StoredJob, status: jpsi.JobStatus | None = None) -> dict[str, Any]:
    """Return the JSON of `jpsi ls` for a job; `status` overrides the status on disk."""
    origin, current = job.origin, job.status if status is None else status
    return {
        "id": job.id,
        "native_id": job.native_id,
        "name": job.name,
        "array_id": job.array_id,
        "array_index": job.array_index,
        "allocation": job.allocation,
        "executor": origin.executor,
        "target": origin.target or None,
        "machine": origin.machine,
        **status_json(current),
        "submitted": _isoformat(job.submitted),
        "started": _isoformat(job.started),
        "remark": None if current.final and not job.damage else job.remark,
        "damage": list(job.damage),
    }


def details_json(job: StoredJob, status: jpsi.JobStatus | None = None) -> dict[str, Any]:
    """Return the JSON of `jpsi show` for a job."""
    array, text = job.array, render_document(job, as_json=True)
    return {
        **summary_json(job, status),
        "attempt": job.counted_attempt,
        "array": None if array is None else {"id": job.array_id, "index": array[1]},
        "history": [status_json(it) for it in job.history],
        "directory": str(job.directory),
        "stdout": str(job.streams.stdout),
        "stderr": str(job.streams.stderr),
        "folder": str(job.folder),
        "document": json.loads(text) if text else None,
    }


def render_document(job: StoredJob, *, as_json: bool = False) -> str:
    """Return the spec as the document of a single job; empty if a document cannot express it."""
    try:
        return jpsi.write_document(job_store.single_spec(job.spec), as_json=as_json)
    except jpsi.InvalidJobException:
        return ""


def _isoformat(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
