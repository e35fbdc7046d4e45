"""The hook implementation of the transport `ssh`."""

from __future__ import annotations

from jpsi.plugin import Transport, hookimpl

from .address import Address
from .transport import SshTransport

__all__ = ["open_transport"]


@hookimpl
def open_transport(url: str) -> Transport:
    """Return the transport to the host in a URL; it connects when the first command runs."""
    return SshTransport(Address.from_url(url))
