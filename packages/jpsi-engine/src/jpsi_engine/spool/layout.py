"""Names the paths of a spool, which are the same below each root, and the tags of jobs in the queue.

All modules that read or write a spool, here or on a remote host, take their paths from it. The batch system
stores the tag with a job, so that the job is found again if its native id was lost.
"""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True)
class Layout:
    """The paths of a spool, for modules that only name them; docs/reference/spool.md draws it."""

    root: str

    @property
    def jobs(self) -> str:
        """The directory that holds the folders of jobs."""
        return f"{self.root}/jobs"

    @property
    def arrays(self) -> str:
        """The directory that holds the folders of arrays."""
        return f"{self.root}/arrays"

    @property
    def events(self) -> str:
        """The directory that holds markers until a client has consumed them."""
        return f"{self.root}/events"

    def path(self, name: str) -> str:
        """Return the path with this name below the root."""
        return f"{self.root}/{name}"


def attempt_file(folder: str, name: str, attempt: int) -> str:
    """Return the path of a file of an attempt in the folder of its job."""
    return f"{folder}/{name}.{attempt}"


def tag(job_id: str, attempt: int) -> str:
    """Return the tag that the batch system stores with one attempt of a job."""
    return f"jpsi-{job_id}-{attempt}"


def array_tag(array: str) -> str:
    """Return the tag that the batch system stores with an array, and so with each of its elements."""
    return tag(array, 1)
