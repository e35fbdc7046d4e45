"""All names of the package, with the classes of every executor and launcher."""

from jpsi import InvalidJobException, SubmitException

from . import executors, launchers
from .job import FunctionJobStatusCallback, Job, JobStatusCallback
from .job_attributes import JobAttributes
from .job_executor import JobExecutor
from .job_executor_config import BatchSchedulerExecutorConfig, JobExecutorConfig
from .job_info import JobInfo
from .job_launcher import Launcher
from .job_spec import JobSpec
from .job_state import JobState, JobStateOrder
from .job_status import JobStatus
from .resource_spec import ResourceSpec, ResourceSpecV1
from .serialize import Export, Import
from .version import VERSION

__version__ = VERSION

__all__ = [
    "VERSION",
    "BatchSchedulerExecutorConfig",
    "Export",
    "FunctionJobStatusCallback",
    "Import",
    "InvalidJobException",
    "Job",
    "JobAttributes",
    "JobExecutor",
    "JobExecutorConfig",
    "JobInfo",
    "JobSpec",
    "JobState",
    "JobStateOrder",
    "JobStatus",
    "JobStatusCallback",
    "Launcher",
    "ResourceSpec",
    "ResourceSpecV1",
    "SubmitException",
    "executors",
    "launchers",
]
