"""Run jobs on any cluster: the J/PSI portable submission interface for Python.

>>> import jpsi
>>> job = jpsi.Job(jpsi.JobSpec("/bin/true"))
>>> executor = jpsi.JobExecutor.get_instance("local")
>>> executor.submit(job)
>>> job.wait().state
<JobState.COMPLETED: 'COMPLETED'>
"""

from typing import TYPE_CHECKING, Any

from jpsi.job import Job, JobStatusCallback
from jpsi.model.dependencies import Dependency, DependencyKind
from jpsi.model.errors import (
    BulkException,
    ConfigError,
    DocumentError,
    DocumentWarning,
    InvalidJobException,
    JpsiError,
    PluginError,
    SubmitException,
    TransferError,
    TransportError,
    UnreachableStateException,
)
from jpsi.model.references import escape
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.states import Evidence, JobState, JobStatus, Reason

if TYPE_CHECKING:
    from jpsi.contract.config import ExecutorConfig
    from jpsi.contract.protocols import Streams
    from jpsi.contract.queue import Queue
    from jpsi.converting import Conversion, read_script
    from jpsi.engine.job_files import JobFiles, OutputPart
    from jpsi.engine.output import Output
    from jpsi.executor import JobExecutor
    from jpsi.futures import wait_all
    from jpsi.launcher import Launcher
    from jpsi.model.document import read_document, write_document
    from jpsi.model.durations import parse_duration
    from jpsi.model.staging_progress import StagingProgress
    from jpsi.registry.configured import Configuration, Configured, configuration
    from jpsi.registry.listing import Plugin, plugins
    from jpsi.system import System

__all__ = [
    "BulkException",
    "ConfigError",
    "Configuration",
    "Configured",
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
    "escape",
    "parse_duration",
    "plugins",
    "read_document",
    "read_script",
    "wait_all",
    "write_document",
]

_LAZY = {
    "Configuration": "jpsi.registry.configured",
    "Configured": "jpsi.registry.configured",
    "Conversion": "jpsi.converting",
    "ExecutorConfig": "jpsi.contract.config",
    "JobExecutor": "jpsi.executor",
    "JobFiles": "jpsi.engine.job_files",
    "Launcher": "jpsi.launcher",
    "Output": "jpsi.engine.output",
    "OutputPart": "jpsi.engine.job_files",
    "Plugin": "jpsi.registry.listing",
    "Queue": "jpsi.contract.queue",
    "StagingProgress": "jpsi.model.staging_progress",
    "Streams": "jpsi.contract.protocols",
    "System": "jpsi.system",
    "configuration": "jpsi.registry.configured",
    "parse_duration": "jpsi.model.durations",
    "plugins": "jpsi.registry.listing",
    "read_document": "jpsi.model.document",
    "read_script": "jpsi.converting",
    "wait_all": "jpsi.futures",
    "write_document": "jpsi.model.document",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the module holds
    # Programs import jpsi long before they run jobs, or without doing so: the engine comes when asked for.
    if name not in _LAZY:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415

    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]
