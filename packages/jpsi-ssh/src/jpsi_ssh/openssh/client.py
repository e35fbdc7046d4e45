"""Builds command lines of the OpenSSH client; ssh(1) and ssh_config(5) of OpenSSH 7.6 or later."""

from __future__ import annotations

from collections.abc import Iterable

from ..address import Address

#: The only command that the login shell gets; every login shell understands it.
REMOTE_SHELL = ("exec", "/bin/sh")

# These override the user's configuration, which otherwise applies: forwardings, as a terminal session may
# hold their ports already, and commands to run.
_ALWAYS = {
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "LogLevel": "ERROR",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
}
# The seconds that an idle connection is kept, and the keepalive interval and count after which ssh ends it.
_PERSIST_SECONDS = 600
_ALIVE_SECONDS, _ALIVE_COUNT = 15, 3


def connect_command(address: Address, control_path: str, *, may_prompt: bool) -> list[str]:
    """Return the command that connects and stays in the background as the control master."""
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
    """Return the command that succeeds if the control master is running."""
    return ["ssh", "-O", "check", *_common(address, control_path, {})]


def shell_command(address: Address, control_path: str) -> list[str]:
    """Return the command that runs a shell on the remote host over the existing connection.

    Without a connection the command fails; the option ProxyCommand keeps ssh from opening one for this shell.
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
