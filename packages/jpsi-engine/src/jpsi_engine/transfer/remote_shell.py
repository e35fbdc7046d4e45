"""Asks the machine that files are on; what it refuses is an error that names the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from jpsi.plugin import BytesResult, BytesTransport, Command
from jpsi_engine.host import failed_there
from jpsi_engine.transfer.checksums import SPAN, SpanSums, Tool
from jpsi_engine.transfer.chunk_size import Pace
from jpsi_engine.transfer.remote_commands import failed_number, summing

# So that nobody waits for long for what else is asked.
_SPANS_AT_ONCE = 4


class FarSide:
    """The machine that a transport leads to. Any thread may call its methods.

    They raise `TransportError` if the connection broke, and `TransferError` if a file is what is wrong.
    """

    def __init__(self, transport: BytesTransport) -> None:
        self._transport = transport
        self._pace = Pace()

    @property
    def piece(self) -> int:
        """How many bytes are to be moved at once."""
        return self._pace.size

    def ask(self, command: Command, paths: Sequence[str], what: str, data: bytes = b"") -> bytes:
        """Have a command carried out, and return what it printed.

        Args:
            command: the command.
            paths: what it is about; it may say which of them it could not deal with.
            what: what is done to them, as in "read".
            data: what it reads.
        """
        result = self.answer(command, data)
        if result.timed_out or result.returncode != 0:
            raise failed_there(paths[min(failed_number(result.stderr), len(paths) - 1)], what, result)
        return result.stdout

    def move(self, command: Command, path: str, what: str, data: bytes = b"") -> bytes:
        """As `ask`, where a piece is moved by it: how long that takes tells how large the next one may be."""
        begun = time.monotonic()
        printed = self.ask(command, [path], what, data)
        self._pace.took(max(len(data), len(printed)), time.monotonic() - begun)
        return printed

    def answer(self, command: Command, data: bytes = b"") -> BytesResult:
        """Have a command carried out, whatever comes of it."""
        return self._transport.exchange(command, data)

    def sums(self, path: str, tool: Tool, size: int) -> list[str]:
        """The checksum of each span of so many bytes of a file."""
        count = max(1, -(-size // SPAN))
        words: list[str] = []
        for first in range(0, count, _SPANS_AT_ONCE):
            spans = range(first, min(count, first + _SPANS_AT_ONCE))
            printed = self.ask(summing(path, tool, spans, size), [path], "read")
            words += [line.split()[0] for line in printed.decode("ascii", "replace").splitlines()]
        return words

    def equal(self, path: str, tool: Tool, size: int, feed: Callable[[SpanSums, int], None]) -> int:
        """How much of a file is as it is here, as far as the checksums of spans tell.

        Args:
            path: the file over there.
            tool: what makes the checksums.
            size: how much of it is compared.
            feed: feeds so many bytes of what is here.
        """
        if size <= 0:
            return 0
        mine = SpanSums(tool)
        feed(mine, size)
        for number, (here, there) in enumerate(zip(mine.all, self.sums(path, tool, size), strict=False)):
            if here != there:
                return number * SPAN
        return size
