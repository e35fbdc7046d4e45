"""What comes back for a request: two streams, each with what was printed between two lines."""

from __future__ import annotations

import signal
from typing import Self

import attrs

from jpsi.plugin import BytesResult

# A shell tells of a signal as a code above this.
_SIGNALLED = 128
_REFUSED = b"refused"


@attrs.define(slots=True, eq=False)
class FramedStream:
    """One stream, of which a part is meant: what stands between the lines `begin` and `end` of a nonce."""

    _begin: bytes
    _end: bytes
    #: All that came, but for what came before `begin`.
    _received: bytearray = attrs.field(factory=bytearray, init=False)
    #: What came before `begin`, at first; the words of others.
    noise: bytes = attrs.field(default=b"", init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    _end_at: int | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, nonce: str) -> Self:
        """The stream in which a request with this nonce is answered."""
        return cls(f"\n{nonce} begin\n".encode("ascii"), f"\n{nonce} end".encode("ascii"))

    def feed(self, data: bytes) -> None:
        """Take what has come."""
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
        """What was printed so far."""
        if not self.has_begun:
            return b""
        return bytes(self._received[: self._end_at])

    @property
    def rest(self) -> bytes:
        """What came after `end`, or in place of everything."""
        if not self.has_begun:
            return bytes(self._received)
        return b"" if self._end_at is None else bytes(self._received[self._end_at + len(self._end) :])

    @property
    def verdict(self) -> bytes | None:
        """What the line `end` says; None if it has not come whole."""
        if self._end_at is None:
            return None
        said, newline, _ = self.rest.partition(b"\n")
        return said.strip() if newline else None


@attrs.define(slots=True, eq=False)
class Response:
    """What has come of the answer to a request."""

    out: FramedStream
    err: FramedStream

    @classmethod
    def to(cls, nonce: str) -> Self:
        """The answer to the request with this nonce."""
        return cls(FramedStream.of(nonce), FramedStream.of(nonce))

    @property
    def is_whole(self) -> bool:
        """Whether nothing more comes."""
        return self.out.verdict is not None and self.err.verdict is not None

    @property
    def is_refused(self) -> bool:
        """Whether the input found no place, and nothing was run."""
        return self.out.verdict == _REFUSED

    @property
    def words(self) -> str:
        """What others than the command have to say: those who connect, or do not."""
        return (self.err.noise + b"\n" + self.err.rest).decode(errors="replace").strip()

    def result(self, *, timed_out: bool = False) -> BytesResult:
        """How the command ended."""
        verdict = self.out.verdict
        returncode = -signal.SIGKILL if timed_out or not verdict else _returncode(int(verdict))
        return BytesResult(
            returncode=returncode,
            stdout=self.out.text,
            stderr=self.err.text.decode(errors="replace"),
            timed_out=timed_out,
        )


def _returncode(code: int) -> int:
    """The code as `CommandResult` has it; what may have been a signal counts as one."""
    number = code - _SIGNALLED
    return -number if number in _SIGNALS else code


_SIGNALS = frozenset(map(int, signal.valid_signals()))
