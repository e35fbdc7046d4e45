"""Paths that may be given as text."""

from __future__ import annotations

from pathlib import Path
from typing import overload


@overload
def to_path(value: None) -> None: ...
@overload
def to_path(value: str | Path) -> Path: ...
def to_path(value: str | Path | None) -> Path | None:
    """Return a path for a text; None stays None."""
    return None if value is None else Path(value)
