"""What the jobs of executions write: while they run from their files, later from what was kept of them."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from ..errors import NotFoundError
from ..files import open_untrusted
from ..jobs import AttemptFiles
from ..model import Attempt, Execution
from ..records import Reading

NAMES = ("stdout", "stderr")


@attrs.frozen(slots=True)
class Piece:
    """The end of a file, or all of it."""

    content: bytes
    #: How many bytes come before.
    skipped: int

    @property
    def text(self) -> str:
        """The content; what is no UTF-8 is shown as something else."""
        return self.content.decode(errors="replace")


def log(records: Reading, execution: Execution, attempt: Attempt, name: str, most: int) -> Piece:
    """The end of what the job of an attempt has written.

    Raises:
        NotFoundError: there is none, or it is none that could be read.
    """
    kept = None if execution.log is None else records.blobs.manifest(execution.log).get(name)
    is_last = attempt.number == max((it.number for it in records.attempts(execution.id)), default=0)
    if kept is not None and kept.link is None and is_last:
        return _end(records.blobs.path(kept.digest), most)
    files = AttemptFiles(records.attempt_directory(attempt))
    return _end(files.stdout if name == "stdout" else files.stderr, most)


def _end(path: Path, most: int) -> Piece:
    try:
        with open_untrusted(path) as file:
            skipped = max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(skipped)
            return Piece(file.read(most), skipped)
    except OSError as e:
        msg = f"there is no {path.name} that can be read: {e.strerror}"
        raise NotFoundError(msg, e) from e
