"""The commands about jobs on disk.

`jpsi ls`, `show`, `explain`, `wait`, `logs`, `cancel`, `top` and others.

They select the jobs that are meant, find them again through their executors, and show or change them.
"""

from __future__ import annotations

from .commands import CANCEL, EXPLAIN, HOLD, LOGS, LS, RELEASE, SHOW, TOP, WAIT

__all__ = ["CANCEL", "EXPLAIN", "HOLD", "LOGS", "LS", "RELEASE", "SHOW", "TOP", "WAIT"]
