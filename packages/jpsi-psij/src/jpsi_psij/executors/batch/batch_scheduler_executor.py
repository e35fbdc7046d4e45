"""The base of the executors of batch systems.

It renders no templates: the hooks of jpsi's plugins do that, and a subclass cannot override them.
"""

from __future__ import annotations

from ...job_executor import JobExecutor
from ...job_executor_config import BatchSchedulerExecutorConfig

__all__ = ["BatchSchedulerExecutor", "BatchSchedulerExecutorConfig", "InvalidJobStateError"]


class InvalidJobStateError(Exception):
    """The error of psij-python for a request that a job's state does not allow; jpsi never raises it."""


class BatchSchedulerExecutor(JobExecutor):
    """An executor of a batch system."""
