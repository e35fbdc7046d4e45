"""Door 2, for authors of plugins: everything that a plugin needs of the core."""

from jpsi.contract.asked import (
    RANK_VARIABLES,
    custom_options,
    custom_problems,
    dependencies,
    duration,
    empty_names,
    option_text,
    units,
    unsayable,
)
from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.hookspecs import (
    Capabilities,
    ExecutorHooks,
    LauncherHooks,
    ObserverHooks,
    Site,
    SubmitContext,
    TransportHooks,
    hookimpl,
)
from jpsi.contract.hostlist import hostlist
from jpsi.contract.observation import NOT_OFFERED, Failure, FailureKind, NotOffered, Observation
from jpsi.contract.protocols import (
    Engine,
    EngineSetup,
    Lines,
    LineTransport,
    Recovered,
    Streams,
    Submission,
    Transport,
)
from jpsi.contract.script_launcher import ScriptLauncher
from jpsi.contract.shell import Directive, Script, ShellLine, line, word
from jpsi.model.dependencies import Dependency, DependencyKind
from jpsi.model.errors import (
    ConfigError,
    InvalidJobException,
    JpsiError,
    PluginError,
    SubmitException,
    TransportError,
)
from jpsi.model.resources import ResourceSpec, ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.states import Evidence, JobState, JobStatus, Reason

__all__ = [
    "NOT_OFFERED",
    "RANK_VARIABLES",
    "BatchConfig",
    "Capabilities",
    "Command",
    "CommandResult",
    "ConfigError",
    "Dependency",
    "DependencyKind",
    "Directive",
    "Engine",
    "EngineSetup",
    "Evidence",
    "ExecutorConfig",
    "ExecutorHooks",
    "Failure",
    "FailureKind",
    "InvalidJobException",
    "JobAttributes",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JpsiError",
    "LauncherHooks",
    "LineTransport",
    "Lines",
    "NotOffered",
    "Observation",
    "ObserverHooks",
    "PluginError",
    "Reason",
    "Recovered",
    "ResourceSpec",
    "ResourceSpecV1",
    "Script",
    "ScriptLauncher",
    "ShellLine",
    "Site",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "Streams",
    "Submission",
    "SubmitContext",
    "SubmitException",
    "Transport",
    "TransportError",
    "TransportHooks",
    "custom_options",
    "custom_problems",
    "dependencies",
    "duration",
    "empty_names",
    "hookimpl",
    "hostlist",
    "line",
    "option_text",
    "units",
    "unsayable",
    "word",
]
