"""The protocol between this process and a shell on the remote host.

Requests and responses pass through one process of the ssh client.

The remote shell reads a program that executes one request after the other. A channel sends the requests, and
parses each response into the exit code and output of a command, or into lines while the command runs.
"""

from .channel import Channel, LostError
from .remote_lines import RemoteLines
from .requests import NOT_FOUND, Mode, Request, request
