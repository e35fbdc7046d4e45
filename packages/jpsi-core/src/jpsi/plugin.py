"""Door 2, for authors of plugins: everything that a plugin needs of the core."""

from jpsi.contract.config import ExecutorConfig
from jpsi.contract.hookspecs import Capabilities, ExecutorHooks, LauncherHooks, hookimpl
from jpsi.contract.protocols import Engine, EngineSetup, Recovered, Streams, Submission
from jpsi.contract.shell import ShellLine, line, word
from jpsi.model.errors import (
    ConfigError,
    InvalidJobException,
    JpsiError,
    PluginError,
    SubmitException,
)
from jpsi.model.resources import ResourceSpec, ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.states import Evidence, JobState, JobStatus, Reason

__all__ = [
    "Capabilities",
    "ConfigError",
    "Engine",
    "EngineSetup",
    "Evidence",
    "ExecutorConfig",
    "ExecutorHooks",
    "InvalidJobException",
    "JobAttributes",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JpsiError",
    "LauncherHooks",
    "PluginError",
    "Reason",
    "Recovered",
    "ResourceSpec",
    "ResourceSpecV1",
    "ShellLine",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "Streams",
    "Submission",
    "SubmitException",
    "hookimpl",
    "line",
    "word",
]
