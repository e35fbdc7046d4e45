"""The configuration of executors on the LSF of this machine."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from jpsi_lsf import LsfConfig


def config(work_directory: Path) -> LsfConfig:
    """Return that of LSF 10.1, or of something older if `JPSI_E2E_LSF=old`, as the README describes."""
    is_old = os.environ.get("JPSI_E2E_LSF") == "old"
    return LsfConfig(
        work_directory=work_directory,
        memory_unit="MB" if is_old else None,
        cores_as_slots=is_old,
        orphan_termination=not is_old,
        compound_requirements=not is_old,
        grace=timedelta(seconds=15),
        longest_interval=timedelta(seconds=5),
    )
