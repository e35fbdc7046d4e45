"""Files by which an agent has a run end at a place that reports to an earlier agent, and not to it."""

from __future__ import annotations

from pathlib import Path

_FOLDER = "stops"


def request_stop(folder: Path, native_id: str) -> None:
    """Ask for the end of a run.

    Args:
        folder: that of its pilot.
        native_id: that of its job.

    Raises:
        OSError: it cannot be asked for; the folder of a pilot that is over is gone.
    """
    stops = folder / _FOLDER
    stops.mkdir(mode=0o700, exist_ok=True)
    (stops / native_id).touch()


def requested_stops(folder: Path) -> list[str]:
    """The native ids of jobs whose end is asked for in a pilot's folder."""
    try:
        return [it.name for it in (folder / _FOLDER).iterdir()]
    except OSError:
        return []
