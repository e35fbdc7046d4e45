"""The executor `rp`."""

from __future__ import annotations

from ..job_executor import JobExecutor


class RPJobExecutor(JobExecutor):
    """RADICAL-Pilot, which jpsi does not have: each use is refused with advice."""

    NAMES = ("rp",)
