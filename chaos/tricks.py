"""Tricks on a client within its process: a wall clock that jumps, and files of others that show late."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path


def jump(file: Path) -> None:
    """Shift the wall clock of this process by the seconds in a file; call it before other imports."""
    real_time, real_time_ns = time.time, time.time_ns

    def offset() -> float:
        try:
            return float(file.read_text() or 0)
        except (FileNotFoundError, ValueError):
            return 0.0

    class Shifted(dt.datetime):
        """A datetime whose `now` follows the clock of this process."""

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Shifted:
            return cls.fromtimestamp(time.time(), tz)

    time.time = lambda: real_time() + offset()
    time.time_ns = lambda: real_time_ns() + int(offset() * 1e9)
    dt.datetime = Shifted  # type: ignore[misc]


def delay(folder: Path, seconds: float) -> None:
    """Show files that other processes make below a directory only after a while, as on NFS."""
    from jpsi_testing.late_files import LateFiles

    LateFiles(folder, seconds).install()
