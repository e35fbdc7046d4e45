"""The configuration of the executor `oar`, and the capabilities of OAR.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import Arrays, BatchConfig, Capabilities, DependencyKind, hookimpl

# An array of a thousand jobs takes oarsub two seconds.
_LARGEST_ARRAY = 1000
# oarstat looks up each job by itself, in about 3 ms; an id may be that of an array of a thousand.
_IDS_PER_QUERY = 10

# oarsub(1), RESOURCE: the name of a property of the nodes
_property = attrs.validators.matches_re(r"[A-Za-z_]\w*\Z")


@attrs.frozen(slots=True, kw_only=True)
class OarConfig(BatchConfig):
    """The settings of the executor `oar`, in addition to those of every batch system."""

    #: The resource that counts nodes, as `-l` spells it.
    node_resource: str = attrs.field(default="nodes", validator=_property)
    #: The resource that counts the cores of a node.
    core_resource: str = attrs.field(default="core", validator=_property)
    #: The resource that counts the GPUs of a node; None if the site has none.
    gpu_resource: str | None = attrs.field(default=None, validator=attrs.validators.optional(_property))


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return OarConfig


@hookimpl
def capabilities() -> Capabilities:
    """Return the capabilities of OAR."""
    return Capabilities(
        hold_option="oar.hold",
        default_launcher="mpirun",
        # OAR resubmits a job as a new one, with the array id of the first; each job has an array id.
        id_variable="OAR_ARRAY_ID",
        restart_variable="OAR_JOB_ID",
        ids_per_query=_IDS_PER_QUERY,
        # oarsub(1): a job of the type `idempotent` is resubmitted.
        requeue_exit_codes=frozenset({99}),
        dependencies=frozenset({DependencyKind.ANY}),
        arrays=Arrays(largest=_LARGEST_ARRAY, id_variable="OAR_ARRAY_ID", index_variable="OAR_ARRAY_INDEX"),
    )
