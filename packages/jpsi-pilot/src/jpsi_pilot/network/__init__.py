"""Connections between the agent and the nodes of its pilots.

The address by which nodes reach this machine, the certificates by which they authenticate each other, and
lines of JSON over TLS.
"""

from .certificates import Authority, client_context, dask_security, server_context
from .wire import LONGEST, Message, Wire, address_of
