"""The executor `cobalt`."""

from __future__ import annotations

from ...job_executor_config import BatchSchedulerExecutorConfig
from .batch_scheduler_executor import BatchSchedulerExecutor


class CobaltExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executor `cobalt`."""


class CobaltJobExecutor(BatchSchedulerExecutor):
    """Cobalt, which jpsi does not have: each use is refused with advice."""

    NAMES = ("cobalt",)
