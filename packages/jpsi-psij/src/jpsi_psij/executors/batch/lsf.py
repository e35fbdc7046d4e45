"""The executor `lsf`."""

from __future__ import annotations

from .batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig


class LsfExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executor `lsf`."""


class LsfJobExecutor(BatchSchedulerExecutor):
    """An LSF."""

    NAME = "lsf"
