"""The transport `ssh`: its hook."""

from __future__ import annotations

from jpsi.plugin import Transport, hookimpl

from .address import Address
from .transport import SshTransport

__all__ = ["open_transport"]


@hookimpl
def open_transport(url: str) -> Transport:
    """The transport to the machine that a URL leads to; it connects when the first command is run."""
    return SshTransport(Address.of(url))
