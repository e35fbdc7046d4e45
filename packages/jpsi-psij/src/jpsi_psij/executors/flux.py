"""The executor `flux`."""

from __future__ import annotations

from ..job_executor import JobExecutor


class FluxJobExecutor(JobExecutor):
    """A Flux instance."""

    NAMES = ("flux",)
