"""Drives the OpenSSH client.

The modules build its command lines, start the control master of a connection, and explain its messages.

One process opens the connection (ControlMaster), and all processes of the user share it through a socket
(ControlPath).
"""

from .client import shell_command
from .control_master import connect, control_path
from .error_messages import explain_failure, is_session_refused
