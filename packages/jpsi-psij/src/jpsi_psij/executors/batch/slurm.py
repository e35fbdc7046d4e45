"""The executor `slurm`."""

from __future__ import annotations

from ...job_executor_config import BatchSchedulerExecutorConfig
from .batch_scheduler_executor import BatchSchedulerExecutor


class SlurmExecutorConfig(BatchSchedulerExecutorConfig):
    """The settings of the executor `slurm`."""


class SlurmJobExecutor(BatchSchedulerExecutor):
    """A Slurm."""

    NAMES = ("slurm", "slurm_single")
