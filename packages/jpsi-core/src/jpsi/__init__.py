"""Run jobs on any cluster: the J/PSI portable submission interface for Python.

>>> import jpsi
>>> job = jpsi.Job(jpsi.JobSpec("/bin/true"))
>>> executor = jpsi.JobExecutor.get_instance("local")
>>> executor.submit(job)
>>> job.wait().state
<JobState.COMPLETED: 'COMPLETED'>
"""

from typing import TYPE_CHECKING

from jpsi.job import Job, JobStatusCallback
from jpsi.model import (
    Bind,
    BulkException,
    ConfigError,
    Container,
    Dependency,
    DependencyKind,
    DocumentError,
    DocumentWarning,
    Evidence,
    HeterogeneousResources,
    InvalidJobException,
    JobAttributes,
    JobSpec,
    JobState,
    JobStatus,
    JobUsage,
    JpsiError,
    PluginError,
    Reason,
    ResourceSpec,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
    SubmitException,
    TransferError,
    TransportError,
    UnreachableStateException,
)

if TYPE_CHECKING:
    from jpsi.api import Conversion, System, read_script
    from jpsi.config import Configuration, Configured, configuration
    from jpsi.contract import ExecutorConfig, JobFiles, Output, OutputPart, Queue, Streams, parse_duration
    from jpsi.document import document_command, read_document, write_document
    from jpsi.executor import JobExecutor
    from jpsi.futures import wait_all
    from jpsi.launcher import Launcher
    from jpsi.layers import Plugin, plugins
    from jpsi.model import StagingProgress, escape
else:
    # Programs import jpsi long before they run jobs, or never run any: the engine is imported on first use.
    from jpsi.lazy import lazy_attributes

    __getattr__, _ = lazy_attributes(
        __name__,
        {
            "jpsi.api": "Conversion System read_script",
            "jpsi.config": "Configuration Configured configuration",
            "jpsi.contract": "ExecutorConfig JobFiles Output OutputPart Queue Streams parse_duration",
            "jpsi.document": "document_command read_document write_document",
            "jpsi.executor": "JobExecutor",
            "jpsi.futures": "wait_all",
            "jpsi.launcher": "Launcher",
            "jpsi.layers": "Plugin plugins",
            "jpsi.model": "StagingProgress escape",
        },
    )

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
__dir__ = __all__.copy
