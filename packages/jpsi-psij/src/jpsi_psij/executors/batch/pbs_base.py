"""The base of the executors of PBS."""

from __future__ import annotations

from ...job_executor_config import BatchSchedulerExecutorConfig
from .batch_scheduler_executor import BatchSchedulerExecutor


class PBSExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executors of PBS."""


class GenericPBSJobExecutor(BatchSchedulerExecutor):
    """A PBS of any kind."""
