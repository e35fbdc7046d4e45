"""The values of the J/PSI specification: specs, resources, states, dependencies, exceptions; no I/O."""

from jpsi.model import serialization
from jpsi.model.dependencies import Dependency, DependencyKind, OtherJob, is_job_id, is_native_id
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
    one_line,
    printable,
)
from jpsi.model.resources import (
    HeterogeneousResources,
    ResourceSpec,
    ResourceSpecV1,
    components,
    node_count,
    process_count,
)
from jpsi.model.serialization import (
    COMPONENTS,
    decode,
    decode_resources,
    encode,
    encode_attributes,
    encode_flags,
    encode_resources,
    shape,
)
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode, copy_spec
from jpsi.model.spec_problems import ENVIRONMENT_NAME, exec_limits, problems, resource_problems, sound_part
from jpsi.model.staging import StagingProgress, has_staging, staging_problems, with_absolute_places
from jpsi.model.states import TIME_SOURCE, Evidence, JobState, JobStatus, Reason, enriched, timed, transitions
from jpsi.model.variable_references import Reference, escape, expand, has_reference, pieces
