"""The base of the executors of batch systems.

It renders no templates: the hooks of jpsi's plugins do that, and a subclass cannot override them.
"""

from __future__ import annotations

from typing import IO, Any

import jpsi

from ...job import Job
from ...job_executor import JobExecutor
from ...job_executor_config import BatchSchedulerExecutorConfig

__all__ = ["BatchSchedulerExecutor", "BatchSchedulerExecutorConfig", "InvalidJobStateError"]


class InvalidJobStateError(Exception):
    """The error of psij-python for a request that a job's state does not allow; jpsi never raises it."""


class BatchSchedulerExecutor(JobExecutor):
    """An executor of a batch system."""

    def _create_script_context(self, job: Job) -> dict[str, Any]:
        """Return an empty context: jpsi renders no templates."""
        del job
        return {}

    def generate_submit_script(self, job: Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the text that `submit` would send to the batch system, and the script that runs the job."""
        del context
        preview = self._executor.preview(jpsi.Job(self._spec_for_jpsi(job)))
        submit_file.write(f"{preview.script or ''}\n{preview.run}")
