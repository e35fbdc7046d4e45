"""Writes files of a run so that they survive a kill or a crash of the machine.

Journals and the folders of runs are written by it: a run that goes on must know every job that was submitted.
An error of the disk becomes a SubmitException with a sentence.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from jpsi import SubmitException
from jpsi_engine import open_private


@contextlib.contextmanager
def convert_disk_errors(message: str) -> Iterator[None]:
    """Within the block, turn an error of the disk into a SubmitException that begins with a sentence."""
    try:
        yield
    except OSError as e:
        raise SubmitException(f"{message}: {e.strerror}", e) from e


def read_optional(path: Path) -> str | None:
    """Return the text of a file; None if there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def write_all(file: int, data: bytes) -> None:
    """Write all of the data."""
    remaining = memoryview(data)
    while remaining:
        # a disk that is nearly full takes only a part
        remaining = remaining[os.write(file, remaining) :]


def write_synced(path: Path, text: str) -> None:
    """Write a file that survives a crash of the machine, once its folder is synced."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
