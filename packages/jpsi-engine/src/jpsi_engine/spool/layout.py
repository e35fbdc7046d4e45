"""Where the parts of a spool are: the same below its root wherever that is."""

from __future__ import annotations

import attrs


@attrs.frozen(slots=True)
class Layout:
    """The paths of a spool, for those who only name them; docs/reference/spool.md draws it."""

    root: str

    @property
    def jobs(self) -> str:
        """Where the folders of jobs are."""
        return f"{self.root}/jobs"

    @property
    def arrays(self) -> str:
        """Where the folders of arrays are."""
        return f"{self.root}/arrays"

    @property
    def events(self) -> str:
        """Where markers are until somebody has consumed them."""
        return f"{self.root}/events"

    def path(self, name: str) -> str:
        """What has this name below the root."""
        return f"{self.root}/{name}"


def file_of(folder: str, name: str, attempt: int) -> str:
    """The path of a file of an attempt in the folder of its job."""
    return f"{folder}/{name}.{attempt}"
