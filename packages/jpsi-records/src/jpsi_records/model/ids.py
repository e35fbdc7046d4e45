"""Ids that sort by time and are unique without coordination."""

from __future__ import annotations

import os
from datetime import datetime


def new_id(now: datetime) -> str:
    """Return a new id that sorts by time: a UUID of version 7 (RFC 9562)."""
    digits = f"{int(now.timestamp() * 1000):012x}"
    rest = os.urandom(10).hex()
    return f"{digits[:8]}-{digits[8:]}-7{rest[:3]}-{'89ab'[int(rest[3], 16) % 4]}{rest[4:7]}-{rest[7:19]}"
