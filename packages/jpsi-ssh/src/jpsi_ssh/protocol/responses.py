"""Parses the response to a request: two streams, each with the output between a begin and an end line."""

from __future__ import annotations

import signal
from typing import Self

import attrs

from jpsi.plugin import BytesResult

# A shell reports signal n as the code 128 + n.
_SIGNALLED = 128
_REFUSED = b"refused"


@attrs.define(slots=True, eq=False)
class FramedStream:
    """A stream; the command's output is the part between the lines `begin` and `end` of a nonce."""

    _begin: bytes
    _end: bytes
    #: All received bytes, without those before `begin` once that has arrived.
    _received: bytearray = attrs.field(factory=bytearray, init=False)
    #: The bytes before `begin`, which other programs printed.
    noise: bytes = attrs.field(default=b"", init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    _end_at: int | None = attrs.field(default=None, init=False)

    @classmethod
    def for_nonce(cls, nonce: str) -> Self:
        """Return an empty stream for the response to the request with this nonce."""
        return cls(f"\n{nonce} begin\n".encode("ascii"), f"\n{nonce} end".encode("ascii"))

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        searched = max(0, len(self._received) - len(self._begin) - len(self._end))
        self._received += data
        if not self.has_begun:
            at = self._received.find(self._begin, searched)
            if at < 0:
                return
            self.has_begun = True
            self.noise = bytes(self._received[:at])
            del self._received[: at + len(self._begin)]
            searched = 0
        if self._end_at is None:
            at = self._received.find(self._end, searched)
            self._end_at = at if at >= 0 else None

    @property
    def text(self) -> bytes:
        """The command's output so far."""
        if not self.has_begun:
            return b""
        return bytes(self._received[: self._end_at])

    @property
    def rest(self) -> bytes:
        """The bytes after `end`, or all bytes if `begin` has not arrived."""
        if not self.has_begun:
            return bytes(self._received)
        return b"" if self._end_at is None else bytes(self._received[self._end_at + len(self._end) :])

    @property
    def verdict(self) -> bytes | None:
        """The text of the line `end`; None if the line is not complete."""
        if self._end_at is None:
            return None
        end_text, newline, _ = self.rest.partition(b"\n")
        return end_text.strip() if newline else None


@attrs.define(slots=True, eq=False)
class Response:
    """The response to a request, as far as it has arrived."""

    out: FramedStream
    err: FramedStream

    @classmethod
    def for_nonce(cls, nonce: str) -> Self:
        """Return an empty response for the request with this nonce."""
        return cls(FramedStream.for_nonce(nonce), FramedStream.for_nonce(nonce))

    @property
    def is_complete(self) -> bool:
        """True if both streams are complete."""
        return self.out.verdict is not None and self.err.verdict is not None

    @property
    def is_refused(self) -> bool:
        """True if the remote host could not store the input, and ran nothing."""
        return self.out.verdict == _REFUSED

    @property
    def words(self) -> str:
        """The messages of ssh and other programs around the command's own output."""
        return (self.err.noise + b"\n" + self.err.rest).decode(errors="replace").strip()

    def result(self, *, timed_out: bool = False) -> BytesResult:
        """Return the command's exit code and output; a timed out command counts as killed."""
        verdict = self.out.verdict
        returncode = -signal.SIGKILL if timed_out or not verdict else _returncode(int(verdict))
        return BytesResult(
            returncode=returncode,
            stdout=self.out.text,
            stderr=self.err.text.decode(errors="replace"),
            timed_out=timed_out,
        )


def _returncode(code: int) -> int:
    """Return the code in the form of `CommandResult`; a code that may stand for a signal counts as one."""
    number = code - _SIGNALLED
    return -number if number in _SIGNALS else code


_SIGNALS = frozenset(map(int, signal.valid_signals()))
