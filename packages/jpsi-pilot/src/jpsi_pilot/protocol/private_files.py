"""Writes files that only the user can read, such as the journal and the environments of jobs."""

from __future__ import annotations

import os
from pathlib import Path

from ..client import open_private


def write_private(path: Path, content: bytes, *, synced: bool = False) -> None:
    """Write a file whole or not at all.

    Args:
        path: the file's path.
        content: its content.
        synced: True if the content must be on the disk when this returns.
    """
    temporary = path.with_name(f"{path.name}.new")
    with open(temporary, "wb", opener=open_private) as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    temporary.replace(path)
