"""Files by which an agent ends a run at a place that reports to an earlier agent."""

from __future__ import annotations

from pathlib import Path

_FOLDER = "stops"


def request_stop(folder: Path, native_id: str) -> None:
    """Request the end of a run.

    Args:
        folder: the directory of its pilot.
        native_id: the native id of its job.

    Raises:
        OSError: the request cannot be written; the directory of a pilot that is over is gone.
    """
    requests = folder / _FOLDER
    requests.mkdir(mode=0o700, exist_ok=True)
    (requests / native_id).touch()


def requested_stops(folder: Path) -> list[str]:
    """Return the native ids of the jobs that another agent requests to stop in a pilot's directory."""
    try:
        return [it.name for it in (folder / _FOLDER).iterdir()]
    except OSError:
        return []
