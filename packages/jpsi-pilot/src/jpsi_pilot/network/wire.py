"""The connection between the agent and nodes, for engines that lack one of their own: lines of JSON over TLS.

The engine `flux` uses it; dask has its own connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any

#: A message, in JSON.
Message = Mapping[str, Any]

#: The longest line, in bytes; scripts and environments of jobs are in files.
LONGEST = 1 << 24
# A crashed machine sends nothing: the socket notices its silence after so many seconds.
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))

# linux/sockios.h and struct ifreq
_SIOCGIFADDR = 0x8915
_NAME_LENGTH = 15
_IFREQ = "256s"
_ADDRESS = slice(20, 24)
# A network reserved for documentation (RFC 5737): no packet is sent, but its route is the one to other
# networks.
_OTHER_NETWORK = ("192.0.2.1", 9)


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


def address_of(interface: str | None) -> str:
    """Return the IPv4 address of a network interface; without a name, of the one towards other networks.

    Raises:
        OSError: there is no such interface, or it has no address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if interface is not None:
            request = struct.pack(_IFREQ, interface.encode()[:_NAME_LENGTH])
            return socket.inet_ntoa(fcntl.ioctl(probe, _SIOCGIFADDR, request)[_ADDRESS])
        try:
            probe.connect(_OTHER_NETWORK)
        except OSError:
            return socket.gethostbyname(socket.gethostname())
        name: tuple[str, int] = probe.getsockname()
        return name[0]
