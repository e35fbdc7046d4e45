"""Locates the control sockets by which a user's processes share connections, in a private directory."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping

from jpsi.plugin import ConfigError, TransportError
from jpsi_engine import make_private_directory

from ..address import Address

# A socket's path may have 108 bytes (unix(7)), on other systems 104; ssh appends 17 at first.
_LONGEST = 86
_NAME_LENGTH = 16


def control_path(address: Address, slot: int, environment: Mapping[str, str] = os.environ) -> str:
    """Return the socket of one of the connections to an address; make its directory if needed.

    Raises:
        TransportError: the directory cannot be made, or other users may enter it.
    """
    return f"{_directory(environment)}/{_name(address)}.{slot}"


def _name(address: Address) -> str:
    text = repr((address.host, address.user, address.port))
    return hashlib.sha256(text.encode()).hexdigest()[:_NAME_LENGTH]


def _directory(environment: Mapping[str, str]) -> str:
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    private = f"{runtime}/jpsi-ssh"
    if runtime.startswith("/") and os.path.isdir(runtime) and _fits(private):  # noqa: PTH112  text, as ssh takes it
        return _make_directory(private)
    temporary = f"{tempfile.gettempdir()}/jpsi-ssh-{os.geteuid()}"
    return _make_directory(temporary if _fits(temporary) else f"/tmp/jpsi-ssh-{os.geteuid()}")  # noqa: S108  made as it must be


def _fits(directory: str) -> bool:
    return len(os.fsencode(directory)) + _NAME_LENGTH + len("/.0") <= _LONGEST


def _make_directory(directory: str) -> str:
    """Make the directory and return it; only the user may enter it, as its sockets give access to hosts."""
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
