"""Finds the jobs of earlier runs of a workflow that still write, or are still to write, to the same files.

Snakemake's own record of them does not last: a job's inner Snakemake overwrites it. jpsi's does. Each job
carries a key of its output files among the user's attributes of its spec.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

_KEY = "snakemake.outputs"


def output_key(directory: str, outputs: Iterable[str]) -> str:
    """Return a text that stands for these output files; empty if there are none.

    >>> output_key("/w", ["b", "a"]) == output_key("/w", ["a", "b"]) != output_key("/v", ["a", "b"])
    True
    """
    names = sorted(map(str, outputs))
    return hashlib.sha256(json.dumps([directory, *names]).encode()).hexdigest() if names else ""


def mark(spec: jpsi.JobSpec, key: str) -> None:
    """Have a job carry the key of its output files."""
    if key:
        spec.attributes.user = {_KEY: key}


def live_jobs() -> dict[str, list[StoredJob]]:
    """Return the jobs of workflows that have not ended, by key, of all executors.

    Raises:
        JpsiError: the files of jobs cannot be read.
    """
    found: dict[str, list[StoredJob]] = {}
    for job in job_store.jobs():
        if not job.status.final and (key := job.user_attributes.get(_KEY)):
            found.setdefault(key, []).append(job)
    return found
