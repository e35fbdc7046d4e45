"""The values of the J/PSI specification.

Specs, resources, states, dependencies and exceptions; no I/O at all.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.model import plain_values
    from jpsi.model.dependencies import (
        Dependency,
        DependencyKind,
        OtherJob,
        is_job_id,
        is_native_id,
        unmet,
    )
    from jpsi.model.durations import (
        parse_duration,
    )
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
    from jpsi.model.plain_values import (
        COMPONENTS,
        decode,
        decode_resources,
        decode_status,
        encode,
        encode_attributes,
        encode_flags,
        encode_resources,
        encode_status,
        shape,
    )
    from jpsi.model.references import (
        Reference,
        escape,
        expand,
        has_reference,
        pieces,
    )
    from jpsi.model.resources import (
        HeterogeneousResources,
        ResourceSpec,
        ResourceSpecV1,
        components,
        core_count,
        node_count,
        process_count,
        resource_problems,
    )
    from jpsi.model.spec import (
        JobAttributes,
        JobSpec,
        StageIn,
        StageOut,
        StageOutFlags,
        StagingMode,
        copy_spec,
    )
    from jpsi.model.spec_problems import (
        ENVIRONMENT_NAME,
        exec_limits,
        problems,
        sound_part,
    )
    from jpsi.model.staging import (
        StagingProgress,
        has_staging,
        staging_problems,
        with_absolute_places,
    )
    from jpsi.model.states import (
        TIME_SOURCE,
        Evidence,
        JobState,
        JobStatus,
        Reason,
        enriched,
        timed,
        transitions,
    )
else:
    from jpsi.lazy import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "dependencies": "Dependency DependencyKind OtherJob is_job_id is_native_id unmet",
            "durations": "parse_duration",
            "errors": (
                "BulkException ConfigError DocumentError DocumentWarning InvalidJobException JpsiError "
                "PluginError SubmitException TransferError TransportError UnreachableStateException one_line "
                "printable"
            ),
            "plain_values": (
                "COMPONENTS decode decode_resources decode_status encode encode_attributes encode_flags "
                "encode_resources encode_status shape"
            ),
            "references": "Reference escape expand has_reference pieces",
            "resources": (
                "HeterogeneousResources ResourceSpec ResourceSpecV1 components core_count node_count "
                "process_count resource_problems"
            ),
            "spec": "JobAttributes JobSpec StageIn StageOut StageOutFlags StagingMode copy_spec",
            "spec_problems": "ENVIRONMENT_NAME exec_limits problems sound_part",
            "staging": "StagingProgress has_staging staging_problems with_absolute_places",
            "states": "Evidence JobState JobStatus Reason TIME_SOURCE enriched timed transitions",
            "": "plain_values",
        },
    )

__all__ = [
    "COMPONENTS",
    "ENVIRONMENT_NAME",
    "TIME_SOURCE",
    "BulkException",
    "ConfigError",
    "Dependency",
    "DependencyKind",
    "DocumentError",
    "DocumentWarning",
    "Evidence",
    "HeterogeneousResources",
    "InvalidJobException",
    "JobAttributes",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JpsiError",
    "OtherJob",
    "PluginError",
    "Reason",
    "Reference",
    "ResourceSpec",
    "ResourceSpecV1",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "StagingProgress",
    "SubmitException",
    "TransferError",
    "TransportError",
    "UnreachableStateException",
    "components",
    "copy_spec",
    "core_count",
    "decode",
    "decode_resources",
    "decode_status",
    "encode",
    "encode_attributes",
    "encode_flags",
    "encode_resources",
    "encode_status",
    "enriched",
    "escape",
    "exec_limits",
    "expand",
    "has_reference",
    "has_staging",
    "is_job_id",
    "is_native_id",
    "node_count",
    "one_line",
    "parse_duration",
    "pieces",
    "plain_values",
    "printable",
    "problems",
    "process_count",
    "resource_problems",
    "shape",
    "sound_part",
    "staging_problems",
    "timed",
    "transitions",
    "unmet",
    "with_absolute_places",
]
