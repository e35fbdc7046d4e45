"""Waits for what nobody announces, such as what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_SECONDS = 0.01


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether something is so within so many seconds; it is found out a hundred times a second."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
