"""The protocol between the agent and nodes, for engines that bring none: lines of JSON over TLS."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

#: A message, in JSON.
Message = Mapping[str, Any]

#: The longest line, in bytes; scripts and environments of jobs are in files.
LONGEST = 1 << 24
# A crashed machine sends nothing: the socket notices its silence after so many seconds.
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))


class Wire:
    """A connection, as one of its ends sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        own_socket = writer.get_extra_info("socket")
        own_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            # macOS has other names
            if hasattr(socket, name):
                own_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    @property
    def peer(self) -> str:
        """The name in the certificate of the other end."""
        subject = self._writer.get_extra_info("peercert")["subject"]
        return str(next(value for part in subject for key, value in part if key == "commonName"))

    def send(self, **message: Any) -> None:  # noqa: ANN401  JSON
        """Send a message; it is lost if the other end is gone."""
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def messages(self) -> AsyncIterator[Message]:
        """Yield the messages of the other end until it is gone; skip an incomplete line."""
        with contextlib.suppress(OSError, ValueError):
            while (line := await self._reader.readline()).endswith(b"\n"):
                yield json.loads(line)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
