"""The interface of psij-python, on jpsi: `import psij`, or `import jpsi_psij as psij` beside psij-python.

>>> import jpsi_psij as psij
>>> job = psij.Job(psij.JobSpec("/bin/true"))
>>> psij.JobExecutor.get_instance("local").submit(job)
>>> job.wait().state
COMPLETED
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import executors, launchers
    from .exceptions import *
    from .job import *
    from .job_attributes import *
    from .job_executor import *
    from .job_executor_config import *
    from .job_info import *
    from .job_launcher import *
    from .job_spec import *
    from .job_state import *
    from .job_status import *
    from .resource_spec import *
    from .serialize import *
    from .version import VERSION as VERSION
    from .version import __version__ as __version__

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
    from jpsi.plugin.engine import door

    # The modules that are names of the package, as psij-python imports them
    _modules = ["version", "exceptions", "job_state", "job_status", "job_attributes", "job_spec", "staging"]
    _modules += ["job", "job_executor", "serialize"]
    _others = ["job_info", "job_executor_config", "resource_spec", "job_launcher"]
    # jpsi loads the launcher of this package without the rest
    _rooms = [f"{__name__}.{it}" for it in (*_modules, *_others, "executors", "launchers")]
    __getattr__, __dir__ = door(__name__, [*__all__, "__version__", *_modules], _rooms)
