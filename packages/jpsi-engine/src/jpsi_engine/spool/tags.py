"""Makes the tags by which jpsi recognises its own jobs in the batch system."""

from __future__ import annotations


def tag(job_id: str, attempt: int) -> str:
    """Return the tag that the batch system stores with one attempt of a job."""
    return f"jpsi-{job_id}-{attempt}"


def array_tag(array: str) -> str:
    """Return the tag that the batch system stores with an array, and so with each of its elements."""
    return tag(array, 1)
