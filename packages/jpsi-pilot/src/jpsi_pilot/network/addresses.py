"""By which address the nodes of pilots reach this machine."""

from __future__ import annotations

import fcntl
import socket
import struct

# linux/sockios.h and struct ifreq
_SIOCGIFADDR = 0x8915
_NAME_LENGTH = 15
_IFREQ = "256s"
_ADDRESS = slice(20, 24)
# A network that nobody has (RFC 5737): nothing is sent there, but the way to it is the one to elsewhere.
_ELSEWHERE = ("192.0.2.1", 9)


def address_of(interface: str | None) -> str:
    """The IPv4 address of a network interface; without a name, of the one that leads to other machines.

    Raises:
        OSError: there is no such interface, or it has no address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        if interface is not None:
            asked = struct.pack(_IFREQ, interface.encode()[:_NAME_LENGTH])
            return socket.inet_ntoa(fcntl.ioctl(any_socket, _SIOCGIFADDR, asked)[_ADDRESS])
        try:
            any_socket.connect(_ELSEWHERE)
        except OSError:
            return socket.gethostbyname(socket.gethostname())
        name: tuple[str, int] = any_socket.getsockname()
        return name[0]
