"""Connections between the agent and the nodes of its pilots.

By which address the nodes reach this machine, the certificates by which both know each other, and lines of
JSON over TLS.
"""

from .addresses import address_of
from .certificates import Authority, calling, listening, security
from .wire import LONGEST, Message, Wire

__all__ = ["LONGEST", "Authority", "Message", "Wire", "address_of", "calling", "listening", "security"]
