"""What can be set for the executor `gridengine`."""

from __future__ import annotations

import re
from typing import Any

import attrs

from jpsi.plugin import BatchConfig, hookimpl

#: Stands in the name of a parallel environment for the number of slots that it gives on each node.
SLOTS = "{slots}"

# sge_types(5) of 8.1.9, object_name; a blank or a comma would begin another request
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*\Z")
_LIST = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*(,[A-Za-z_][A-Za-z0-9_.+-]*)*\Z")


# A validator is typed by its field, which may be None or not: hence Any.
def _environment(_instance: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and not _NAME.match(value.replace(SLOTS, "_", 1)):
        msg = f"{attribute.name} must be the name of a parallel environment, not {value!r}"
        raise ValueError(msg)


def _resources(_instance: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and not _LIST.match(value):
        msg = f"{attribute.name} must be the name of a resource as `qconf -sc` lists it, not {value!r}"
        raise ValueError(msg)


@attrs.frozen(slots=True, kw_only=True)
class GridEngineConfig(BatchConfig):
    """What can be set for the executor `gridengine`, besides what every batch system has."""

    #: The parallel environment for jobs of several processes (`qconf -spl` lists those of a site). `{slots}`
    #: in it stands for the slots on each node, where a site has one for each number, as in `mpi-{slots}`;
    #: only then can a job say how its processes are spread over nodes.
    parallel_environment: str | None = attrs.field(default=None, validator=_environment)
    #: The parallel environment whose slots are all on one node (its `allocation_rule` is `$pe_slots`).
    node_environment: str | None = attrs.field(default=None, validator=_environment)
    #: The resource that a job's memory is asked for by, in shares for each slot; or several with commas
    #: between them, such as `mem_free,h_vmem`.
    memory_resource: str = attrs.field(default="mem_free", validator=_resources)
    #: The resource that counts GPUs, in shares for each slot.
    gpu_resource: str | None = attrs.field(default=None, validator=_resources)
    #: The resource by which a job has its nodes to itself.
    exclusive_resource: str = attrs.field(default="exclusive", validator=_resources)
    #: Whether Grid Engine may run a job again after a node has failed; None is the site's own rule.
    requeue: bool | None = None


@hookimpl
def config_class() -> type[BatchConfig]:
    """The class."""
    return GridEngineConfig
