"""The executor `local`."""

from __future__ import annotations

from ..job_executor import JobExecutor


class LocalJobExecutor(JobExecutor):
    """The processes of this machine."""

    NAMES = ("local",)
