"""Reads the logs of jobs, for `jpsi request logs` and the web pages: standard output and error of an attempt.

While a job runs, they are files of its attempt, which the job controls; once it has ended, the last attempt's
are in the blob store.
"""

from __future__ import annotations

import os

from ..errors import NotFoundError
from ..files import open_untrusted
from ..jobs import AttemptFiles
from ..model import Attempt, Execution
from .queries import RecordsReader

#: The names of the logs.
LOG_NAMES = ("stdout", "stderr")


def read_log(
    records: RecordsReader, execution: Execution, attempt: Attempt, name: str, most: int | None = None
) -> tuple[bytes, int]:
    """Return an attempt's standard output or error, and the number of bytes before what is returned.

    Args:
        records: those of the execution.
        execution: the execution of the attempt.
        attempt: the attempt.
        name: one of `LOG_NAMES`.
        most: the most bytes to return, the last ones; None is all.

    Raises:
        NotFoundError: the file does not exist or cannot be read.
    """
    stored = None if execution.log is None else records.blobs.manifest(execution.log).get(name)
    is_last = attempt.number == max((it.number for it in records.attempts(execution.id)), default=0)
    if stored is not None and stored.link is None and is_last:
        path = records.blobs.path(stored.digest)
    else:
        files = AttemptFiles(records.attempt_directory(attempt))
        path = files.stdout if name == "stdout" else files.stderr
    try:
        with open_untrusted(path) as file:
            skipped = 0 if most is None else max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(skipped)
            return file.read(-1 if most is None else most), skipped
    except OSError as e:
        msg = f"there is no {path.name} that can be read: {e.strerror}"
        raise NotFoundError(msg, e) from e
