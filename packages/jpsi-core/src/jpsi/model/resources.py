"""What a job asks of the machine: the resource specifications and the counts that follow from them."""

from __future__ import annotations

import abc

import attrs

_COUNTS = {
    "node_count": 1,
    "process_count": 1,
    "processes_per_node": 1,
    "cpu_cores_per_process": 1,
    "gpu_cores_per_process": 0,
    "memory": 1,
}


class ResourceSpec(abc.ABC):
    """The abstract root of resource specifications; `ResourceSpecV1` is the only one so far."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def version(self) -> int:
        """The version of the resource specification that the class implements."""


@attrs.define(slots=True, kw_only=True)
class ResourceSpecV1(ResourceSpec):
    """A homogeneous set of processes on homogeneous nodes.

    Every count is None until it is set, and None counts as its default of 1 (0 for GPUs). Wrong values
    may be assigned; `submit` reports them all.
    """

    #: Nodes to allocate.
    node_count: int | None = None
    #: Processes in total.
    process_count: int | None = None
    #: Processes on each node; the last node may have fewer.
    processes_per_node: int | None = None
    #: Cores for each process.
    cpu_cores_per_process: int | None = None
    #: GPUs for each process.
    gpu_cores_per_process: int | None = None
    #: Whether the nodes are shared with no other job.
    exclusive_node_use: bool = False
    #: Memory for the whole job, in bytes.
    memory: int | None = None

    @property
    def version(self) -> int:
        """Always 1."""
        return 1

    @property
    def computed_process_count(self) -> int:
        """The number of processes that run, whatever was given to say so.

        >>> ResourceSpecV1(node_count=4, processes_per_node=3).computed_process_count
        12
        """
        if self.process_count is not None:
            return self.process_count
        return (self.node_count or 1) * (self.processes_per_node or 1)

    @property
    def computed_node_count(self) -> int:
        """The number of nodes, rounded up where processes do not fill the last one.

        >>> ResourceSpecV1(process_count=10, processes_per_node=3).computed_node_count
        4
        """
        if self.node_count is not None:
            return self.node_count
        if self.processes_per_node is None:
            return 1
        return -(-self.computed_process_count // self.processes_per_node)

    @property
    def computed_processes_per_node(self) -> int:
        """The largest number of processes on a node."""
        if self.processes_per_node is not None:
            return self.processes_per_node
        return -(-self.computed_process_count // self.computed_node_count)


def process_count(resources: ResourceSpec | None) -> int:
    """The number of processes that a job runs as, whatever it says about resources.

    >>> process_count(None), process_count(ResourceSpecV1(node_count=2))
    (1, 2)
    """
    return resources.computed_process_count if isinstance(resources, ResourceSpecV1) else 1


def node_count(resources: ResourceSpec | None) -> int:
    """The number of nodes that a job runs on, whatever it says about resources.

    >>> node_count(None), node_count(ResourceSpecV1(process_count=3, processes_per_node=2))
    (1, 2)
    """
    return resources.computed_node_count if isinstance(resources, ResourceSpecV1) else 1


def core_count(resources: ResourceSpec | None) -> int:
    """The number of cores that a job has in all, whatever it says about resources.

    >>> core_count(None), core_count(ResourceSpecV1(process_count=2, cpu_cores_per_process=3))
    (1, 6)
    """
    cores = resources.cpu_cores_per_process if isinstance(resources, ResourceSpecV1) else None
    return process_count(resources) * (cores or 1)


def resource_problems(resources: object) -> list[str]:
    """Everything that is wrong with a resource specification, one sentence each."""
    if not isinstance(resources, ResourceSpec):
        return [f"resources must be a ResourceSpec, not {type(resources).__name__}"]
    if not isinstance(resources, ResourceSpecV1):
        return [f"resources of version {resources.version} are not supported; use ResourceSpecV1"]
    found = []
    for name, least in _COUNTS.items():
        value = getattr(resources, name)
        if value is None:
            continue
        if type(value) is not int:
            found.append(f"resources.{name} must be a whole number, not {value!r}")
        elif value < least:
            found.append(f"resources.{name} must be at least {least}, not {value}")
    if not isinstance(resources.exclusive_node_use, bool):
        found.append(
            f"resources.exclusive_node_use must be True or False, not {resources.exclusive_node_use!r}"
        )
    return found or _contradictions(resources)


def _contradictions(resources: ResourceSpecV1) -> list[str]:
    nodes, processes = resources.node_count, resources.process_count
    if nodes is None or processes is None:
        return []
    per_node = resources.processes_per_node
    if per_node is None:
        if nodes > processes:
            return [f"resources: {processes} processes cannot occupy {nodes} nodes"]
        return []
    needed = -(-processes // per_node)
    if needed != nodes:
        wanted = f"{processes} processes at {per_node} per node need {needed} nodes"
        return [f"resources: {wanted}, but node_count is {nodes}"]
    return []
