"""The executor `lsf`."""

from __future__ import annotations

from ...job_executor_config import BatchSchedulerExecutorConfig
from .batch_scheduler_executor import BatchSchedulerExecutor


class LsfExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executor `lsf`."""


class LsfJobExecutor(BatchSchedulerExecutor):
    """An LSF."""

    NAMES = ("lsf",)
