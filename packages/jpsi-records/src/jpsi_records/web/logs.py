"""The logs of jobs: read from the attempt's files while it runs, later from the blob store."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from ..errors import NotFoundError
from ..files import open_untrusted
from ..jobs import AttemptFiles
from ..model import Attempt, Execution
from ..records import RecordsReader

NAMES = ("stdout", "stderr")


@attrs.frozen(slots=True)
class Piece:
    """The end of a file, or all of it."""

    content: bytes
    #: The number of bytes before this part.
    skipped: int

    @property
    def text(self) -> str:
        """The content as text; invalid UTF-8 is replaced."""
        return self.content.decode(errors="replace")


def log(records: RecordsReader, execution: Execution, attempt: Attempt, name: str, most: int) -> Piece:
    """Return at most `most` bytes from the end of an attempt's standard output or error.

    Raises:
        NotFoundError: the file does not exist or cannot be read.
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
