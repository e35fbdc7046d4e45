"""The files that say that the stage out of an attempt is not complete.

    <root>/jobs/<id>/get.<n>     attempt n ends only when its stage out is complete; its progress, in words

Processes lock such a file while they transfer the attempt's files.
"""

from __future__ import annotations

import contextlib
import json
import os

import attrs

from jpsi_engine import host

#: The file name, without the attempt's number.
STAGE_OUT_FILE = "get"


@attrs.frozen(slots=True)
class StageOutFiles:
    """The stage-out files of all jobs of one spool."""

    #: The directory of the jobs' folders.
    _jobs: str

    def path(self, job_id: str, attempt: int) -> str:
        """Return the path of the file that exists while the stage out of an attempt is not complete."""
        return f"{self._jobs}/{job_id}/{STAGE_OUT_FILE}.{attempt}"

    def mark_pending(self, job_id: str, attempt: int) -> None:
        """Record that an attempt ends only when its stage out is complete."""
        host.write(self.path(job_id, attempt), b"")

    def write_progress(self, job_id: str, attempt: int, words: str) -> None:
        """Write the progress of an attempt's stage out, in words for users; never raises."""
        # the file is rewritten in place, not replaced: a process may hold a lock on it
        with contextlib.suppress(OSError):
            fd = os.open(self.path(job_id, attempt), os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(fd, "wb") as file:
                file.write(json.dumps(words).encode("ascii"))

    def clear_pending(self, job_id: str, attempt: int) -> None:
        """Record that the stage out of an attempt is complete, or will never be."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(job_id, attempt))  # noqa: PTH108
