"""The files of the side on which jobs run: moved there and back, and looked into while they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from jpsi.contract.protocols import BytesTransport, Transport

if TYPE_CHECKING:
    from jpsi.engine.moving import Progress


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


def job_files(transport: Transport) -> JobFiles:
    """The files of the side on which the commands of a transport run.

    A transport that says nothing of files runs commands that see those of this machine.
    """
    if not transport.is_local and isinstance(transport, BytesTransport):
        from jpsi.engine.far_files import FarFiles  # noqa: PLC0415  most programs need none

        return FarFiles(transport)
    from jpsi.engine.files_here import FilesHere  # noqa: PLC0415

    return FilesHere()
