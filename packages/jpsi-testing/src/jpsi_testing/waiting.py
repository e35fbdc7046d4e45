"""Waits in tests for conditions that send no event, such as the progress of another process."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_SECONDS = 0.01


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Return True as soon as a condition is true, or False after `seconds` without; poll every 10 ms."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
