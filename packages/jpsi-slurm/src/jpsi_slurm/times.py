"""The times that Slurm's commands print."""

from __future__ import annotations

from datetime import UTC, datetime


def time(text: str) -> datetime | None:
    """A time of day as printed with TZ=UTC0; None for what stands where there is none, such as `N/A`."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None
