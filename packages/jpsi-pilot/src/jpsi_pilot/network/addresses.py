"""Finds the address by which the nodes of pilots reach this machine."""

from __future__ import annotations

import fcntl
import socket
import struct

# linux/sockios.h and struct ifreq
_SIOCGIFADDR = 0x8915
_NAME_LENGTH = 15
_IFREQ = "256s"
_ADDRESS = slice(20, 24)
# A network reserved for documentation (RFC 5737): no packet is sent, but its route is the one to other
# networks.
_OTHER_NETWORK = ("192.0.2.1", 9)


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
