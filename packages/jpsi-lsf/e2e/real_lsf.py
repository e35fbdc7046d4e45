"""The configuration of executors on the LSF of this machine."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from jpsi_lsf import LsfConfig


def settings() -> dict[str, Any]:
    """Return the settings of something older than LSF 10.1, if `JPSI_E2E_LSF=old`; see the README."""
    if os.environ.get("JPSI_E2E_LSF") != "old":
        return {}
    other = {"cores_as_slots": True, "orphan_termination": False, "compound_requirements": False}
    return {"memory_unit": "MB", **other}


def config(work_directory: Path) -> LsfConfig:
    """Return the configuration for the LSF on PATH."""
    return LsfConfig(
        work_directory=work_directory,
        grace=timedelta(seconds=15),
        longest_interval=timedelta(seconds=5),
        **settings(),
    )
