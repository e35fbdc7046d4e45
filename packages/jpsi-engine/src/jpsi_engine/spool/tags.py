"""The tags by which the jobs of a batch system are known as jpsi's."""

from __future__ import annotations


def tag(job_id: str, attempt: int) -> str:
    """Return what the batch system carries for one attempt of a job."""
    return f"jpsi-{job_id}-{attempt}"


def array_tag(array: str) -> str:
    """Return what the batch system carries for an array, and so for each of its elements."""
    return tag(array, 1)
