"""OpenSSH.

The command lines of its client, the control socket and master of a connection, and its messages.

One process of a user makes the connection (ControlMaster), and all of the user's share it by a socket
(ControlPath).
"""

from .client import shell_command
from .control_master import connect
from .control_sockets import control_path
from .error_messages import explain_failure, is_session_refused

__all__ = [
    "connect",
    "control_path",
    "explain_failure",
    "is_session_refused",
    "shell_command",
]
