"""Reads what the worker wrote about the calls of a job, and makes results and exceptions of it."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi import Job, JobStatus, SubmitException
from jpsi_engine import check_private_directory, open_private

from .errors import CallError, JobEndedError, RemoteTraceback, UnpicklableError
from .worker import Record

_LENGTH_BYTES = 8
# How much of the end of standard error a message shows.
_TAIL_BYTES = 2000


@attrs.frozen
class Records:
    """The records of the calls of one job, in the order of the calls."""

    found: Sequence[Record]
    #: True if the worker came to its end.
    is_whole: bool

    @classmethod
    def read(cls, folder: Path) -> Records:
        """Read the records in the folder of a job that has ended.

        Raises:
            ConfigError: other users could have written them.
        """
        check_private_directory(folder, "the folder of the call")
        for name in ("result", "result.part"):
            with contextlib.suppress(FileNotFoundError):
                fd = open_private(folder / name, os.O_RDONLY)
                with os.fdopen(fd, "rb") as file:
                    return cls(list(_split(file.read())), name == "result")
        return cls((), is_whole=False)

    @property
    def continuation(self) -> tuple[bytes, bytes] | None:
        """The pickles of the function and the arguments with which the call goes on, or None."""
        kind, *rest = self.found[-1] if self.found else ("",)
        return (rest[0], rest[1]) if kind == "continued" else None

    def outcome(self, position: int, ended: Callable[[], CallError]) -> Outcome:
        """Return the outcome of the call at a position; `ended` makes the error of one that has none."""
        if self.found and self.found[0][0] == "impossible":
            return Outcome(self.found[0])
        if position < len(self.found):
            return Outcome(self.found[position])
        return Outcome(("ended", ended()))


def _split(data: bytes) -> Iterator[Record]:
    """Yield the complete records."""
    start = 0
    while start + _LENGTH_BYTES <= len(data):
        end = start + _LENGTH_BYTES + int.from_bytes(data[start : start + _LENGTH_BYTES], "big")
        if end > len(data):
            return
        yield pickle.loads(data[start + _LENGTH_BYTES : end])  # noqa: S301  only the user writes to the folder
        start = end


@attrs.frozen
class Outcome:
    """The outcome of one call, still pickled."""

    _record: Record

    def get(self) -> Any:  # noqa: ANN401  whatever the function returned
        """Return the result of the call, or raise its exception."""
        error = self.exception()
        if error is not None:
            raise error
        return pickle.loads(self._record[1])  # noqa: S301  only the user writes to the folder

    def exception(self) -> BaseException | None:
        """Return the exception of the call, or None if it has a result."""
        kind, *rest = self._record
        if kind == "value":
            return None
        if kind == "raised":
            return _exception(*rest)
        (found,) = rest
        return found if isinstance(found, CallError) else CallError(found)


def _exception(data: bytes | None, description: str, traceback: str) -> BaseException:
    error: BaseException
    try:
        error = UnpicklableError(description) if data is None else pickle.loads(data)  # noqa: S301  as above
    except Exception as e:  # noqa: BLE001  the class may be another one here, and raise anything
        error = UnpicklableError(f"{description} (here it cannot be unpickled: {type(e).__name__}: {e})")
    error.__cause__ = RemoteTraceback(traceback)
    return error


def job_ended(function: str, job: Job, status: JobStatus) -> JobEndedError:
    """Return the error of a call whose job ended without a record of it."""
    tail = _last_lines(job)
    shown = f"; the end of its standard error:\n{tail}" if tail else ""
    return JobEndedError(f"{job} ended before its call of {function} did: {status}{shown}", job, status)


def _last_lines(job: Job) -> str:
    try:
        output = job.output("stderr")
        part = None if output is None else output.read(-_TAIL_BYTES)
    except SubmitException as e:
        return f"({e})"
    return "" if part is None else part.data.decode(errors="replace").strip()
