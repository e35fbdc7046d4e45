"""Files that outlive a kill, or a crash of the machine; what the disk refuses is told in a sentence."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from jpsi import SubmitException
from jpsi.plugin.kit import open_private


@contextlib.contextmanager
def kept(says: str) -> Iterator[None]:
    """Within the block, tell in a sentence what the disk does not do."""
    try:
        yield
    except OSError as e:
        msg = f"{says}: {e.strerror}"
        raise SubmitException(msg, e) from e


def write(file: int, data: bytes) -> None:
    """All of it."""
    left = memoryview(data)
    while left:
        # a disk that is nearly full takes a part
        left = left[os.write(file, left) :]


def write_synced(path: Path, text: str) -> None:
    """Have a file outlive a crash of the machine, once its folder is synced."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Have the names in a folder outlive a crash of the machine."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
