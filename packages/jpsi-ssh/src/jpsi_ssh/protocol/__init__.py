"""The protocol.

Requests to a shell on the remote host and its responses, over one process of the ssh client.

A remote shell reads a program that carries out one request after the other. A channel sends them, and takes
each response apart into the code and the output of a command, or into lines while it runs.
"""

from .channel import Channel, LostError
from .remote_lines import RemoteLines
from .requests import NOT_FOUND, Mode, Request, request

__all__ = [
    "NOT_FOUND",
    "Channel",
    "LostError",
    "Mode",
    "RemoteLines",
    "Request",
    "request",
]
