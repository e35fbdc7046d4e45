"""The files of the machine on which jobs run: moved there and back, and looked into while they grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import attrs

#: Told how many bytes of how many have arrived.
Progress = Callable[[int, int], None]


@attrs.frozen(slots=True)
class OutputPart:
    """A part of what is in a file."""

    data: bytes
    #: Where in the file it begins: 0 if the file is shorter than was asked for, as when a job runs again.
    offset: int
    #: How long the file was then.
    size: int

    @property
    def end(self) -> int:
        """Where in the file what comes next begins."""
        return self.offset + len(self.data)


class JobFiles(Protocol):
    """Files where jobs run. Any thread may call its methods.

    Paths over there are absolute, or begin with `~/`, which is the home directory there.
    A tree arrives with its permission bits, its links as they are, and directories that are empty. A
    directory that is there already keeps what is in it. Each file appears whole, under its name, or not at
    all: what came of it is beside it until then. Whoever tries again after a break goes on from there.
    """

    @property
    def are_here(self) -> bool:
        """Whether they are files of this machine."""

    def put(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Put a file or a tree of this machine there.

        Args:
            source: what to put; a link is followed.
            target: the name that it gets there, and not the directory that it gets into.
            progress: told as bytes arrive.

        Raises:
            TransferError: a file is in the way, cannot be read, or cannot be written.
            TransportError: the connection broke.
        """

    def get(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Get a file or a tree from there; as `put` in the other direction."""

    def read(self, path: str, offset: int, most: int) -> OutputPart | None:
        """What is in a file from an offset on, at most so much; None if there is no such file.

        Args:
            path: the file. One that is neither a file nor a directory counts as empty.
            offset: where to begin; a negative one is counted from the end. If the file is shorter than that,
                what is told begins at its beginning.
            most: how much to tell.

        Raises:
            TransferError: it cannot be read.
            TransportError: the connection broke.
        """


@attrs.frozen(slots=True)
class Streams:
    """Where the output of a job goes, as absolute paths on the machine where it runs."""

    stdout: Path
    stderr: Path


#: The streams that a job writes to.
Stream = Literal["stdout", "stderr"]

# How much is told at once, unless one asks for more.
_MOST = 1 << 20


@attrs.frozen
class Output:
    """One stream of a job: a file that grows. Any thread may read it."""

    _files: JobFiles
    #: Where it is on the machine where the job runs.
    path: Path

    @classmethod
    def of(cls, files: JobFiles, streams: Streams, stream: Stream) -> Output:
        """One of the streams of a job, among the files of the machine where it runs."""
        return cls(files, getattr(streams, stream))

    @property
    def is_here(self) -> bool:
        """Whether it is a file of this machine; otherwise each look at it takes a while."""
        return self._files.are_here

    def read(self, offset: int = 0, most: int = _MOST) -> OutputPart | None:
        """What is in it from an offset on; None if there is no such file, or not yet.

        To follow a job, ask again from the `end` of what came. A job that runs again begins its output anew:
        what comes then has the `offset` 0.

        Args:
            offset: where to begin; a negative one is counted from the end. If the file is shorter than that,
                what is told begins at its beginning.
            most: how many bytes to tell at most.

        Raises:
            SubmitException: it cannot be read; if `transient` is true, not now.
        """
        return self._files.read(str(self.path), offset, most)
