"""Files that only the user reads."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def private(path: str, flags: int) -> int:
    """Opens a file for `open`, whatever the umask is."""
    return os.open(path, flags, PRIVATE)


def write_private(path: Path, content: bytes, *, synced: bool = False) -> None:
    """Write a file whole or not at all.

    Args:
        path: where it is.
        content: what is in it.
        synced: whether it is on the disk when this returns.
    """
    fresh = path.with_name(f"{path.name}.new")
    with open(fresh, "wb", opener=private) as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    fresh.replace(path)
