"""Where the sockets are by which processes of a user share a connection: a directory of their own."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping

from jpsi.plugin import ConfigError, TransportError
from jpsi.plugin.kit import make_private_directory

from ..address import Address

# unix(7) has room for 108 bytes, other systems for 104; ssh adds 17 to the name while it makes the socket.
_LONGEST = 86
_NAME_LENGTH = 16


def control_path(address: Address, slot: int, environment: Mapping[str, str] = os.environ) -> str:
    """The socket of one of several connections to an address, in a directory that is there.

    Raises:
        TransportError: the directory is not what it must be.
    """
    return f"{_directory(environment)}/{_name(address)}.{slot}"


def _name(address: Address) -> str:
    text = repr((address.host, address.user, address.port))
    return hashlib.sha256(text.encode()).hexdigest()[:_NAME_LENGTH]


def _directory(environment: Mapping[str, str]) -> str:
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    private = f"{runtime}/jpsi-ssh"
    if runtime.startswith("/") and os.path.isdir(runtime) and _fits(private):  # noqa: PTH112  text, as ssh takes it
        return _made(private)
    temporary = f"{tempfile.gettempdir()}/jpsi-ssh-{os.geteuid()}"
    return _made(temporary if _fits(temporary) else f"/tmp/jpsi-ssh-{os.geteuid()}")  # noqa: S108  made as it must be


def _fits(directory: str) -> bool:
    return len(os.fsencode(directory)) + _NAME_LENGTH + len("/.0") <= _LONGEST


def _made(directory: str) -> str:
    """The directory, which nobody else can get at: whoever reaches a socket is let in by it."""
    try:
        make_private_directory(directory, "the directory for connections of ssh")
        found = os.lstat(directory)
    except ConfigError as e:
        raise TransportError(str(e), e) from e
    except OSError as e:
        msg = f"the directory {directory} for connections of ssh cannot be made: {e}"
        raise TransportError(msg, e, transient=True) from e
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        msg = f"{directory} must be a directory that you alone can enter, for the connections of ssh"
        raise TransportError(msg, transient=True)
    return directory
