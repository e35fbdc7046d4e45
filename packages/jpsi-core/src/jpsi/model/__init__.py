"""The values of the J/PSI specification: specs, resources, states, dependencies, exceptions; no I/O."""

from typing import TYPE_CHECKING

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
    process_count,
)
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode, copy_spec
from jpsi.model.states import TIME_SOURCE, Evidence, JobState, JobStatus, Reason, enriched, timed, transitions
from jpsi.model.usage import JobUsage

if TYPE_CHECKING:
    from jpsi.model import serialization
    from jpsi.model.serialization import decode, shape
    from jpsi.model.spec import Bind, Container
    from jpsi.model.spec_problems import *
    from jpsi.model.staging import StagingProgress, has_staging, staging_problems, with_absolute_places
    from jpsi.model.variable_references import Reference, escape, expand, has_reference, pieces
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, _ = lazy_attributes(
        __name__,
        {
            ".serialization": "decode shape",
            ".spec": "Bind Container",
            ".spec_problems": "SIGNALS VARIABLE_NAME exec_limits problems resource_problems sound_part",
            ".staging": "StagingProgress has_staging staging_problems with_absolute_places",
            ".variable_references": "Reference escape expand has_reference pieces",
            ".": "serialization",
        },
    )
