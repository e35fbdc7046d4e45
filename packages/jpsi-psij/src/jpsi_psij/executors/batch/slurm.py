"""The executor `slurm`."""

from __future__ import annotations

from .batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig


class SlurmExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executor `slurm`."""


class SlurmJobExecutor(BatchSchedulerExecutor):
    """A Slurm."""

    NAME = "slurm"
