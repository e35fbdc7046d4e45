"""What the OpenSSH client is told, as ssh(1) and ssh_config(5) have it since OpenSSH 7.6."""

from __future__ import annotations

from collections.abc import Iterable

from ..address import Address

#: The one thing that a login shell is told, whichever shell that is.
REMOTE_SHELL = ("exec", "/bin/sh")

# All of the user's configuration holds but what a terminal may have taken already, such as the ports of
# forwardings, and what to run.
_ALWAYS = {
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "LogLevel": "ERROR",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
}
# How long a connection that nobody uses is kept for whoever comes next, and when one is taken for dead.
_PERSIST_SECONDS = 600
_ALIVE_SECONDS, _ALIVE_COUNT = 15, 3


def connect_command(address: Address, control_path: str, *, may_prompt: bool) -> list[str]:
    """The command that connects, and stays in the background for others to use the connection."""
    options = {
        "ControlMaster": "yes",
        "ControlPersist": str(_PERSIST_SECONDS),
        "ServerAliveInterval": str(_ALIVE_SECONDS),
        "ServerAliveCountMax": str(_ALIVE_COUNT),
    }
    if not may_prompt:
        options["BatchMode"] = "yes"
    return ["ssh", "-N", "-f", *_common(address, control_path, options)]


def check_command(address: Address, control_path: str) -> list[str]:
    """The command that succeeds if there is a connection to use."""
    return ["ssh", "-O", "check", *_common(address, control_path, {})]


def shell_command(address: Address, control_path: str) -> list[str]:
    """The command that runs a shell on the remote host, by the connection that there is.

    Without one it fails: ssh would make another by itself, for this one shell.
    """
    options = {"ControlMaster": "no", "BatchMode": "yes", "ProxyCommand": "false"}
    return ["ssh", *_common(address, control_path, options), *REMOTE_SHELL]


def _common(address: Address, control_path: str, options: dict[str, str]) -> Iterable[str]:
    yield "-T"
    yield "-S"
    yield control_path.replace("%", "%%")
    for name, value in (_ALWAYS | options).items():
        yield "-o"
        yield f"{name}={value}"
    if address.user is not None:
        yield "-l"
        yield address.user
    if address.port is not None:
        yield "-p"
        yield str(address.port)
    yield "--"
    yield address.host
