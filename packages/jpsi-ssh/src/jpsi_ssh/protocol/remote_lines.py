"""Streams the output of a command on the remote host line by line while it runs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator

from .channel import Channel
from .requests import Request


class RemoteLines:
    """The output of one command as lines; implements `jpsi.plugin.Lines`. It closes its own channel."""

    def __init__(self, channel: Channel, request: Request) -> None:
        self._channel = channel
        self._request = request
        #: True while the channel is in use.
        self.is_open = True
        weakref.finalize(self, channel.drop)

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, without line ends, until the command or the connection ends."""
        try:
            yield from lines_in(self._channel.listen(self._request), self._request.nonce)
        finally:
            self.is_open = False
            self._channel.close()

    def abandon(self) -> None:
        """Leave the command to the parent process, in a forked child."""
        self.is_open = False
        self._channel.close()

    def close(self) -> None:
        """End the command by killing the client; the remote shell then sees the end of its input."""
        self.is_open = False
        self._channel.kill()


def lines_in(chunks: Iterable[bytes], nonce: str) -> Iterator[str]:
    r"""Yield the lines between the begin and end lines of the response to the request with this nonce.

    >>> list(lines_in([b"hi\n\nn beg", b"in\n1\n2\n", b"\nn end 0\n"], "n"))
    ['1', '2']
    """
    begin, end = f"{nonce} begin".encode("ascii"), f"{nonce} end".encode("ascii")
    has_begun = is_empty_held = False
    for line in _lines(chunks):
        if not has_begun:
            has_begun = line == begin
            continue
        if line.startswith(end):
            return
        if is_empty_held:
            yield ""
        # a newline precedes the line `end`, as the command's output may end without one
        is_empty_held = not line
        if line:
            yield line.decode(errors="replace")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
