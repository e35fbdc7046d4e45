"""Run jobs on any cluster: the J/PSI portable submission interface for Python.

>>> import jpsi
>>> job = jpsi.Job(jpsi.JobSpec("/bin/true"))
>>> executor = jpsi.JobExecutor.get_instance("local")
>>> executor.submit(job)
>>> job.wait().state
<JobState.COMPLETED: 'COMPLETED'>
"""

from typing import TYPE_CHECKING

from jpsi.lazy import door

if TYPE_CHECKING:
    from jpsi.api import *
    from jpsi.config import *
    from jpsi.contract import *
    from jpsi.document import *
    from jpsi.executor import JobExecutor
    from jpsi.futures import wait_all
    from jpsi.job import *
    from jpsi.launcher import Launcher
    from jpsi.layers import *
    from jpsi.model import *

__all__ = [
    "Bind",
    "BulkException",
    "ConfigError",
    "Configuration",
    "Configured",
    "Container",
    "Conversion",
    "Dependency",
    "DependencyKind",
    "DocumentError",
    "DocumentWarning",
    "Evidence",
    "ExecutorConfig",
    "HeterogeneousResources",
    "InvalidJobException",
    "Job",
    "JobAttributes",
    "JobExecutor",
    "JobFiles",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JobStatusCallback",
    "JobUsage",
    "JpsiError",
    "Launcher",
    "Output",
    "OutputPart",
    "Plugin",
    "PluginError",
    "Queue",
    "Reason",
    "ResourceSpec",
    "ResourceSpecV1",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "StagingProgress",
    "Streams",
    "SubmitException",
    "System",
    "TransferError",
    "TransportError",
    "UnreachableStateException",
    "configuration",
    "document_command",
    "escape",
    "parse_duration",
    "plugins",
    "read_document",
    "read_script",
    "wait_all",
    "write_document",
]

if not TYPE_CHECKING:
    # Programs import jpsi long before they run jobs, or never run any: each room is imported on first use.
    _below = ["job", "model", "document", "contract", "config", "layers"]
    _rooms = [f"jpsi.{it}" for it in (*_below, "launcher", "api", "executor", "futures")]
    __getattr__, __dir__ = door(__name__, __all__, _rooms)
