"""The files on the machine where jobs run: staging in both directions, and reads of growing output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import attrs

#: Called with the number of bytes that have arrived, and the total.
Progress = Callable[[int, int], None]


@attrs.frozen(slots=True)
class OutputPart:
    """A part of a file's content."""

    data: bytes
    #: Where it begins in the file: 0 if the file is shorter than requested, as when a job runs again.
    offset: int
    #: The length of the file at that time.
    size: int

    @property
    def end(self) -> int:
        """The position in the file at which the next part begins."""
        return self.offset + len(self.data)


class JobFiles(Protocol):
    """The files of the machine where jobs run. Any thread may call its methods.

    Paths on that machine are absolute, or begin with `~/`, which is the home directory on that machine. A
    tree is transferred with its permission bits, its links unchanged, and its empty directories. A directory
    that exists at the target keeps its content. Each file appears whole, under its name, or not at all: a
    partial file is kept beside it. A new attempt after a broken connection resumes from there.
    """

    @property
    def are_local(self) -> bool:
        """True if they are files of this machine."""

    def put(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a file or a tree of this machine to that machine.

        A link as `source` is followed; `target` is its new name on that machine, and not the directory that
        receives it. `progress` is called as bytes arrive.

        Raises:
            TransferError: a file is in the way, cannot be read, or cannot be written.
            TransportError: the connection broke.
        """

    def get(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a file or a tree from that machine; as `put`, in the other direction."""

    def read(self, path: str, offset: int, most: int) -> OutputPart | None:
        """Return at most `most` bytes of a file from an offset on; as `Output.read`.

        A path that is neither a file nor a directory counts as empty.

        Raises:
            TransferError: the file cannot be read.
            TransportError: the connection broke.
        """


@attrs.frozen(slots=True)
class Streams:
    """The files for a job's output, as absolute paths on the machine where it runs."""

    stdout: Path
    stderr: Path


#: The streams that a job writes to.
Stream = Literal["stdout", "stderr"]

# The default number of bytes of one read.
_READ_BYTES = 1 << 20


@attrs.frozen
class Output:
    """A stream of a job: a file that grows. Any thread may read it."""

    _files: JobFiles
    #: Its path on the machine where the job runs.
    path: Path

    @classmethod
    def of(cls, files: JobFiles, streams: Streams, stream: Stream) -> Output:
        """Return one output stream of a job, among the files of the machine where it runs."""
        return cls(files, getattr(streams, stream))

    @property
    def is_local(self) -> bool:
        """True if it is a file of this machine; otherwise each read takes a while."""
        return self._files.are_local

    def read(self, offset: int = 0, most: int = _READ_BYTES) -> OutputPart | None:
        """Return its content from an offset on; None if there is no such file, or not yet.

        To follow a job, read again from the `end` of the last part. A job that runs again starts its output
        from the beginning: the next part then has the `offset` 0.

        A negative offset is counted from the end; in a shorter file, the part begins at the beginning. The
        part has at most `most` bytes.

        Raises:
            SubmitException: the file cannot be read; if `transient` is true, a later read may succeed.
        """
        return self._files.read(str(self.path), offset, most)
