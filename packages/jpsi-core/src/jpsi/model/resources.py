"""The resources of a job: the resource specifications and the counts that follow from them."""

from __future__ import annotations

import abc
from typing import Any, Self

import attrs

from jpsi.model.errors import InvalidJobException


class ResourceSpec(abc.ABC):
    """The abstract base of resource specifications: `ResourceSpecV1` and `HeterogeneousResources`."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def version(self) -> int:
        """The version of the resource specification that the class implements."""


@attrs.define(slots=True, kw_only=True)
class ResourceSpecV1(ResourceSpec):
    """A homogeneous set of processes on homogeneous nodes.

    Every count is None until it is set, and None counts as its default of 1 (0 for GPUs). Wrong values
    may be assigned; `submit` reports them all. The constructor raises InvalidJobException if the process
    count is no multiple of other counts; `uneven` is for nodes of which some have fewer processes.
    """

    #: Nodes to allocate.
    node_count: int | None = None
    #: Processes in total.
    process_count: int | None = None
    #: Processes on each node.
    processes_per_node: int | None = None
    #: Cores for each process.
    cpu_cores_per_process: int | None = None
    #: GPUs for each process.
    gpu_cores_per_process: int | None = None
    #: True if the job shares its nodes with no other job.
    exclusive_node_use: bool = False
    #: Memory for the whole job, in bytes.
    memory: int | None = None
    #: Instead of that, memory for each core, or for each GPU, in bytes.
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None

    def __attrs_post_init__(self) -> None:
        counts = self.process_count, self.node_count, self.processes_per_node
        # `submit` reports what is no count
        total, nodes, per_node = (it if type(it) is int and it > 0 else None for it in counts)
        if nodes and per_node and total not in {None, nodes * per_node}:
            problem = f"not node_count {nodes} times processes_per_node {per_node}"
        elif total is not None and total % (nodes or per_node or 1):
            other = f"node_count {nodes}" if nodes else f"processes_per_node {per_node}"
            problem = f"no multiple of {other}; ResourceSpecV1.uneven() permits nodes with fewer processes"
        else:
            return
        raise InvalidJobException(f"process_count {total} is {problem}")

    @classmethod
    def uneven(cls, *, process_count: int | None = None, **fields: Any) -> Self:  # noqa: ANN401  those of the class
        """Return resources, as assignment makes them: the last nodes may have fewer processes than the first.

        >>> ResourceSpecV1.uneven(process_count=10, processes_per_node=3).computed_node_count
        4
        """
        resources = cls(**fields)
        resources.process_count = process_count
        return resources

    @property
    def version(self) -> int:
        """Always 1."""
        return 1

    @property
    def computed_process_count(self) -> int:
        """The number of processes that run, given or computed.

        >>> ResourceSpecV1(node_count=4, processes_per_node=3).computed_process_count
        12
        """
        if self.process_count is not None:
            return self.process_count
        return (self.node_count or 1) * (self.processes_per_node or 1)

    @property
    def computed_node_count(self) -> int:
        """The number of nodes, rounded up if processes do not fill the last one."""
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

    @property
    def computed_core_count(self) -> int:
        """The number of cores of all processes.

        >>> ResourceSpecV1(process_count=4, cpu_cores_per_process=2).computed_core_count
        8
        """
        return self.computed_process_count * (self.cpu_cores_per_process or 1)

    @property
    def computed_memory(self) -> int | None:
        """The bytes of memory for the whole job, given or computed.

        >>> ResourceSpecV1(process_count=4, cpu_cores_per_process=2, memory_per_cpu=10).computed_memory
        80
        """
        per_process = (self.cpu_cores_per_process or 1) * (self.memory_per_cpu or 0)
        per_process += (self.gpu_cores_per_process or 0) * (self.memory_per_gpu or 0)
        return self.memory or self.computed_process_count * per_process or None

    @property
    def computed_memory_per_node(self) -> int | None:
        """The bytes of memory for the processes of the fullest node.

        >>> ResourceSpecV1.uneven(process_count=5, processes_per_node=3, memory=50).computed_memory_per_node
        30
        """
        processes = self.computed_process_count
        share = min(self.computed_processes_per_node, processes)
        return None if self.computed_memory is None else -(-self.computed_memory * share // processes)


def _components(value: Any) -> Any:  # noqa: ANN401  whatever was assigned
    return tuple(value) if isinstance(value, list | tuple) else value


@attrs.define(slots=True)
class HeterogeneousResources(ResourceSpec):
    """Slots of several kinds, which a job gets together: an extension of jpsi to the specification.

    Each component is a homogeneous set of processes, with nodes, memory and exclusive use of its own. The job
    starts on the first node of the first component, and its processes are numbered through all components, in
    their order. Not every executor supports it; if one does not, `submit` raises InvalidJobException.

    >>> writer = ResourceSpecV1(process_count=1, memory=2**36)
    >>> solvers = ResourceSpecV1(node_count=2, processes_per_node=4, gpu_cores_per_process=1)
    >>> process_count(HeterogeneousResources([writer, solvers]))
    9
    """

    #: The components, two or more.
    components: tuple[ResourceSpecV1, ...] = attrs.field(converter=_components)

    @property
    def version(self) -> int:
        """The version of its components, 1."""
        return 1


def components(resources: ResourceSpec | None) -> tuple[ResourceSpecV1, ...]:
    """Return a job's kinds of slots, in their order; one process if the job has no resources.

    >>> components(None) == (ResourceSpecV1(),)
    True
    """
    if isinstance(resources, HeterogeneousResources):
        return resources.components
    return (resources if isinstance(resources, ResourceSpecV1) else ResourceSpecV1(),)


def process_count(resources: ResourceSpec | None) -> int:
    """Return the number of processes that a job runs as; `resources` may be None.

    >>> process_count(None), process_count(ResourceSpecV1(node_count=2))
    (1, 2)
    """
    return sum(it.computed_process_count for it in components(resources))
