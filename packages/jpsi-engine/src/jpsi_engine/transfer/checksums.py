"""Computes checksums of a file in spans, as programs do that remote hosts have.

A transfer that was interrupted is resumed after the last span that is the same on both machines, and
`remote_copy` compares the sums of the result with those of the source.
"""

from __future__ import annotations

import hashlib
import zlib
from enum import StrEnum
from typing import Protocol

import attrs

#: The bytes that one checksum covers: after an interruption, at most so many are compared in vain.
SPAN = 1 << 26

# POSIX has cksum(1) but no sha256sum(1), which is preferred, as its checksum is stronger evidence.
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_ALL = 0xFFFFFFFF


class Tool(StrEnum):
    """A program that prints a checksum as the first word of a line."""

    SHA256 = "sha256sum"
    CKSUM = "cksum"


class _Sum(Protocol):
    def update(self, data: bytes | memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class SpanSums:
    """The checksums of the spans of a file that is read from its beginning."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._complete_sums: list[str] = []
        self._sum = _new_sum(tool)
        self._fed_bytes = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Add the next bytes of the file."""
        rest = memoryview(data)
        while rest:
            chunk = rest[: SPAN - self._fed_bytes]
            self._sum.update(chunk)
            self._fed_bytes += len(chunk)
            rest = rest[len(chunk) :]
            if self._fed_bytes == SPAN:
                self._complete_sums.append(self._sum.hexdigest())
                self._sum, self._fed_bytes = _new_sum(self._tool), 0

    @property
    def all(self) -> list[str]:
        """The checksum of each span so far; the last span may be incomplete. An empty file has one, too."""
        if self._complete_sums and not self._fed_bytes:
            return self._complete_sums
        return [*self._complete_sums, self._sum.hexdigest()]


@attrs.define(slots=True)
class _Cksum:
    """The checksum of cksum(1), with the methods of a hash; its digest is decimal.

    It takes the bits of a byte in the opposite order to zlib, starts with 0, and ends with the length.
    """

    _crc: int = _ALL
    _length: int = 0

    def update(self, data: bytes | memoryview, /) -> None:
        self._crc = zlib.crc32(bytes(data).translate(_REVERSED), self._crc)
        self._length += len(data)

    def hexdigest(self) -> str:
        length = self._length.to_bytes((self._length.bit_length() + 7) // 8, "little")
        crc = zlib.crc32(length.translate(_REVERSED), self._crc) ^ _ALL
        return str(int(f"{crc:032b}"[::-1], 2) ^ _ALL)


def _new_sum(tool: Tool) -> _Sum:
    return hashlib.sha256() if tool is Tool.SHA256 else _Cksum()
