"""The configuration of the executor `gridengine`.

Sites and users set it in configuration files; hooks receive it as `site.config`.
"""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import BatchConfig, hookimpl
from jpsi.plugin.kit import must_be

#: The placeholder, in the name of a parallel environment, for its number of slots per node.
SLOTS_PLACEHOLDER = "{slots}"

# sge_types(5) of 8.1.9, object_name; a blank or a comma would start another request
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*\Z")
_LIST = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*(,[A-Za-z_][A-Za-z0-9_.+-]*)*\Z")

_check_environment = must_be(
    "the name of a parallel environment",
    lambda it: it is None or _NAME.match(it.replace(SLOTS_PLACEHOLDER, "_", 1)) is not None,
)
_check_resources = must_be(
    "the name of a resource as `qconf -sc` lists it", lambda it: it is None or _LIST.match(it) is not None
)


@attrs.frozen(slots=True, kw_only=True)
class GridEngineConfig(BatchConfig):
    """The settings of the executor `gridengine`, in addition to those of every batch system."""

    #: The parallel environment for jobs with several processes (`qconf -spl` lists those of a site). If the
    #: site has one for each number of slots per node, `{slots}` stands for that number, as in `mpi-{slots}`;
    #: only then can a job choose its number of nodes or processes per node.
    parallel_environment: str | None = attrs.field(default=None, validator=_check_environment)
    #: The parallel environment with all slots on one node (its `allocation_rule` is `$pe_slots`).
    node_environment: str | None = attrs.field(default=None, validator=_check_environment)
    #: The resource with which jpsi requests memory, per slot; or several resources separated by commas, such
    #: as `mem_free,h_vmem`.
    memory_resource: str = attrs.field(default="mem_free", validator=_check_resources)
    #: The resource that counts GPUs, per slot.
    gpu_resource: str | None = attrs.field(default=None, validator=_check_resources)
    #: The resource whose value is the kind of a node's GPUs.
    gpu_type_resource: str | None = attrs.field(default=None, validator=_check_resources)
    #: The resource that gives a job exclusive use of its nodes.
    exclusive_resource: str = attrs.field(default="exclusive", validator=_check_resources)
    #: True if Grid Engine may rerun a job after a node failed; None leaves it to the site's rule.
    requeue: bool | None = None


@hookimpl
def config_class() -> type[BatchConfig]:
    """Return the class of this executor's configuration."""
    return GridEngineConfig
