"""Door 2, for authors of plugins: everything that a plugin needs of the core."""

from jpsi.contract.answered import carried_tag, moment, refusals, tagged
from jpsi.contract.asked import (
    RANK_VARIABLES,
    attributes,
    node_count,
    resources,
    time_limit,
    units,
)
from jpsi.contract.background import heed_signals, pass_signals, trap_signals
from jpsi.contract.command import BytesResult, Command, CommandResult
from jpsi.contract.command_lines import command_lines
from jpsi.contract.config import BatchConfig, ExecutorConfig
from jpsi.contract.directive_words import Given, dash_options, gnu_options
from jpsi.contract.far_directories import FarDirectories, directories_command, read_directories
from jpsi.contract.foreign import Draft, ForeignScript, Reader
from jpsi.contract.hookspecs import (
    Arrays,
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
from jpsi.contract.indices import read_indices, write_indices
from jpsi.contract.missing import need_program
from jpsi.contract.native_ids import IdForm, the_one_id
from jpsi.contract.observation import (
    NOT_OFFERED,
    Failure,
    FailureKind,
    Meaning,
    NotOffered,
    Observation,
)
from jpsi.contract.options import CustomOptions, Options, custom_options, given
from jpsi.contract.private_files import (
    check_private_directory,
    check_way,
    make_private_directory,
    open_private,
)
from jpsi.contract.protocols import (
    BulkEngine,
    BytesTransport,
    Engine,
    EngineSetup,
    FileTransport,
    InquiringEngine,
    Lines,
    LineTransport,
    Outcomes,
    PatientEngine,
    Preview,
    PreviewingEngine,
    RecallingEngine,
    Recovered,
    RefusingEngine,
    Streams,
    Submission,
    Transport,
)
from jpsi.contract.queue import Queue
from jpsi.contract.readers import (
    attribute,
    count,
    output,
    passed_over,
    path,
    read_amount,
    read_count,
    read_exclusive,
    read_name,
    read_path,
)
from jpsi.contract.script_form import ScriptForm
from jpsi.contract.script_launcher import ScriptLauncher
from jpsi.contract.script_reader import ScriptReader
from jpsi.contract.shell import Directive, Script, ShellLine, line, word
from jpsi.contract.submit_errors import SubmitErrors
from jpsi.model.dependencies import Dependency, DependencyKind
from jpsi.model.durations import parse_duration
from jpsi.model.errors import (
    ConfigError,
    InvalidJobException,
    JpsiError,
    PluginError,
    SubmitException,
    TransferError,
    TransportError,
)
from jpsi.model.printable import printable
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1, components
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.states import Evidence, JobState, JobStatus, Reason

__all__ = [
    "NOT_OFFERED",
    "RANK_VARIABLES",
    "Arrays",
    "BatchConfig",
    "BulkEngine",
    "BytesResult",
    "BytesTransport",
    "Capabilities",
    "Command",
    "CommandResult",
    "ConfigError",
    "CustomOptions",
    "Dependency",
    "DependencyKind",
    "Directive",
    "Draft",
    "Engine",
    "EngineSetup",
    "Evidence",
    "ExecutorConfig",
    "ExecutorHooks",
    "Failure",
    "FailureKind",
    "FarDirectories",
    "FileTransport",
    "ForeignScript",
    "Given",
    "HeterogeneousResources",
    "IdForm",
    "InquiringEngine",
    "InvalidJobException",
    "JobAttributes",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JpsiError",
    "LauncherHooks",
    "LineTransport",
    "Lines",
    "Meaning",
    "NotOffered",
    "Observation",
    "ObserverHooks",
    "Options",
    "Outcomes",
    "PatientEngine",
    "PluginError",
    "Preview",
    "PreviewingEngine",
    "Queue",
    "Reader",
    "Reason",
    "RecallingEngine",
    "Recovered",
    "RefusingEngine",
    "ResourceSpec",
    "ResourceSpecV1",
    "Script",
    "ScriptForm",
    "ScriptLauncher",
    "ScriptReader",
    "ShellLine",
    "Site",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "Streams",
    "Submission",
    "SubmitContext",
    "SubmitErrors",
    "SubmitException",
    "TransferError",
    "Transport",
    "TransportError",
    "TransportHooks",
    "attribute",
    "attributes",
    "carried_tag",
    "check_private_directory",
    "check_way",
    "command_lines",
    "components",
    "count",
    "custom_options",
    "dash_options",
    "directories_command",
    "given",
    "gnu_options",
    "heed_signals",
    "hookimpl",
    "hostlist",
    "line",
    "make_private_directory",
    "moment",
    "need_program",
    "node_count",
    "open_private",
    "output",
    "parse_duration",
    "pass_signals",
    "passed_over",
    "path",
    "printable",
    "read_amount",
    "read_count",
    "read_directories",
    "read_exclusive",
    "read_indices",
    "read_name",
    "read_path",
    "refusals",
    "resources",
    "tagged",
    "the_one_id",
    "time_limit",
    "trap_signals",
    "units",
    "word",
    "write_indices",
]
