"""The interface of psij-python, on jpsi: `import psij`, or `import jpsi_psij as psij` beside psij-python.

>>> import jpsi_psij as psij
>>> job = psij.Job(psij.JobSpec("/bin/true"))
>>> psij.JobExecutor.get_instance("local").submit(job)
>>> job.wait().state
COMPLETED
"""

from typing import TYPE_CHECKING

from jpsi.plugin.engine import lazy_attributes

if TYPE_CHECKING:
    from .interface import *
    from .interface import __version__ as __version__

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

if not TYPE_CHECKING:
    # jpsi loads the launcher of this package without the rest
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".interface": " ".join(["__version__", *__all__]),
            # as the modules of psij-python, which its package imports
            ".": "exceptions job job_attributes job_executor job_spec job_state job_status serialize staging "
            "version",
        },
    )
