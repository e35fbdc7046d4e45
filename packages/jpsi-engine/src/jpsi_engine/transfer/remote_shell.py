"""Runs the commands for files on a remote host, and turns their failures into errors that name the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from jpsi.plugin import BytesResult, BytesTransport, Command
from jpsi_engine.host import remote_file_error
from jpsi_engine.transfer.checksums import SPAN, SpanSums, Tool
from jpsi_engine.transfer.chunk_size import ChunkSize
from jpsi_engine.transfer.remote_commands import failed_number, summing

# Few at once, so that other commands on the connection need not wait long.
_SPANS_AT_ONCE = 4


class RemoteShell:
    """The remote host behind a transport. Any thread may call its methods.

    They raise `TransportError` if the connection broke, and `TransferError` if a file is the cause.
    """

    def __init__(self, transport: BytesTransport) -> None:
        self._transport = transport
        self._pace = ChunkSize()

    @property
    def piece(self) -> int:
        """The chunk size for the next transfer, in bytes."""
        return self._pace.size

    def ask(self, command: Command, paths: Sequence[str], what: str, data: bytes = b"") -> bytes:
        """Run a command and return its output; raise if it failed or timed out.

        Args:
            command: the command.
            paths: the files that it handles; its standard error may say which of them failed.
            what: the past participle for the error, as in "read".
            data: the input of the command.
        """
        result = self.answer(command, data)
        if result.timed_out or result.returncode != 0:
            raise remote_file_error(paths[min(failed_number(result.stderr), len(paths) - 1)], what, result)
        return result.stdout

    def move(self, command: Command, path: str, what: str, data: bytes = b"") -> bytes:
        """Run a command that transfers one chunk, like `ask`, and adapt the chunk size to its duration."""
        begun = time.monotonic()
        printed = self.ask(command, [path], what, data)
        self._pace.took(max(len(data), len(printed)), time.monotonic() - begun)
        return printed

    def answer(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command and return its result, even if it failed."""
        return self._transport.exchange(command, data)

    def sums(self, path: str, tool: Tool, size: int) -> list[str]:
        """Return the checksum of each span of a file's first `size` bytes."""
        count = max(1, -(-size // SPAN))
        words: list[str] = []
        for first in range(0, count, _SPANS_AT_ONCE):
            spans = range(first, min(count, first + _SPANS_AT_ONCE))
            printed = self.ask(summing(path, tool, spans, size), [path], "read")
            words += [line.split()[0] for line in printed.decode("ascii", "replace").splitlines()]
        return words

    def equal(self, path: str, tool: Tool, size: int, feed: Callable[[SpanSums, int], None]) -> int:
        """Return how many bytes from the beginning are the same in both files, by the checksums of spans.

        Args:
            path: the file on the remote host.
            tool: the program that computes the checksums.
            size: the number of bytes to compare.
            feed: feeds that many bytes of the local file to the checksums.
        """
        if size <= 0:
            return 0
        mine = SpanSums(tool)
        feed(mine, size)
        for number, (here, there) in enumerate(zip(mine.all, self.sums(path, tool, size), strict=False)):
            if here != there:
                return number * SPAN
        return size
