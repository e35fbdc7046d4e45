"""The base of the executors of PBS."""

from __future__ import annotations

from .batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig


class PBSExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executors of PBS."""


class GenericPBSJobExecutor(BatchSchedulerExecutor):
    """A PBS of any kind."""
