"""Runs the commands for files on a remote host, and turns their failures into errors that name the file.

`remote_copy` and `remote_files` use it. It keeps chunks so small that other commands on the same connection
need not wait long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from jpsi.plugin import BytesTransport, Command
from jpsi_engine.host import remote_file_error
from jpsi_engine.transfer.checksums import SPAN, SpanSums, Tool
from jpsi_engine.transfer.remote_commands import checksum_command, parse_failed_number

# Few at a time, so that other commands on the connection need not wait long.
_SPANS_PER_COMMAND = 4
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.25, 1.0
_SMALLEST, _LARGEST = 1 << 16, 1 << 24


@attrs.define(slots=True, eq=False)
class ChunkSize:
    """The size of the next chunk, in bytes: a multiple of 64 KiB, at most 16 MiB.

    It is adapted so that other users of the connection need not wait long.
    """

    size: int = 1 << 20

    def adapt(self, count: int, seconds: float) -> None:
        """Adapt the size to the seconds that a chunk of `count` bytes took."""
        if seconds > _LONGEST_SECONDS and self.size > _SMALLEST:
            self.size //= 2
        elif seconds < _SHORTEST_SECONDS and self.size < _LARGEST and count >= self.size:
            self.size *= 2


class RemoteShell:
    """The remote host behind a transport. Any thread may call its methods.

    They raise `TransportError` if the connection broke, and `TransferError` if a file is the cause.
    """

    def __init__(self, transport: BytesTransport) -> None:
        self._transport = transport
        self._chunk_size = ChunkSize()

    @property
    def chunk_bytes(self) -> int:
        """The chunk size for the next transfer, in bytes."""
        return self._chunk_size.size

    def run_command(self, command: Command, paths: Sequence[str], what: str, data: bytes = b"") -> bytes:
        """Run a command and return its output; raise if it failed or timed out.

        Args:
            command: the command.
            paths: the files that it handles; its standard error may say which of them failed.
            what: the past participle for the error, as in "read".
            data: the input of the command.
        """
        result = self._transport.exchange(command, data)
        if result.timed_out or result.returncode != 0:
            failed = min(parse_failed_number(result.stderr), len(paths) - 1)
            raise remote_file_error(paths[failed], what, result)
        return result.stdout

    def run_chunk(self, command: Command, path: str, what: str, data: bytes = b"") -> bytes:
        """Run a command that transfers one chunk as `run_command` does, and adapt the chunk size."""
        begun = time.monotonic()
        printed = self.run_command(command, [path], what, data)
        self._chunk_size.adapt(max(len(data), len(printed)), time.monotonic() - begun)
        return printed

    def read_checksums(self, path: str, tool: Tool, size: int) -> list[str]:
        """Return the checksum of each span of a file's first `size` bytes."""
        count = max(1, -(-size // SPAN))
        words: list[str] = []
        for first in range(0, count, _SPANS_PER_COMMAND):
            spans = range(first, min(count, first + _SPANS_PER_COMMAND))
            printed = self.run_command(checksum_command(path, tool, spans, size), [path], "read")
            words += [line.split()[0] for line in printed.decode("ascii", "replace").splitlines()]
        return words

    def common_prefix(self, path: str, tool: Tool, size: int, feed: Callable[[SpanSums, int], None]) -> int:
        """Return how many bytes from the beginning are the same in both files, by the checksums of spans.

        Args:
            path: the file on the remote host.
            tool: the program that computes the checksums.
            size: the number of bytes to compare.
            feed: feeds that many bytes of the local file to the checksums.
        """
        if size <= 0:
            return 0
        local_sums = SpanSums(tool)
        feed(local_sums, size)
        remote_sums = self.read_checksums(path, tool, size)
        for number, (local, remote) in enumerate(zip(local_sums.all, remote_sums, strict=False)):
            if local != remote:
                return number * SPAN
        return size
