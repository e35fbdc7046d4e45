"""The resources of a job."""

from __future__ import annotations

import abc

import attrs

import jpsi

_KIBIBYTE = 1024


class ResourceSpec(abc.ABC):
    """The base of resource specifications; there is one version."""

    @property
    @abc.abstractmethod
    def version(self) -> int:
        """The version of the resource specification."""

    @staticmethod
    def get_instance(version: int) -> ResourceSpec:
        """Return an empty specification of this version; raise ValueError if there is none."""
        if version != 1:
            raise ValueError(f"there is no resource specification of version {version}, only version 1")
        return ResourceSpecV1()


@attrs.define(slots=False)
class ResourceSpecV1(ResourceSpec):
    """A homogeneous set of processes on homogeneous nodes.

    `process_count` is `node_count` times `processes_per_node`.
    """

    node_count: int | None = None
    process_count: int | None = None
    processes_per_node: int | None = None
    cpu_cores_per_process: int | None = None
    gpu_cores_per_process: int | None = None
    exclusive_node_use: bool = False
    #: Bytes for the whole job.
    memory: int | None = None

    def __attrs_post_init__(self) -> None:
        # it refuses counts that contradict each other
        jpsi.ResourceSpecV1(**attrs.asdict(self))

    @property
    def version(self) -> int:
        """Always 1."""
        return 1

    @property
    def computed_node_count(self) -> int:
        """The number of nodes, given or computed."""
        return self.for_jpsi().computed_node_count

    @property
    def computed_process_count(self) -> int:
        """The number of processes, given or computed."""
        return self.for_jpsi().computed_process_count

    @property
    def computed_processes_per_node(self) -> int:
        """The number of processes on each node, given or computed."""
        return self.for_jpsi().computed_processes_per_node

    @property
    def memory_kb(self) -> int | None:
        """The memory in KiB."""
        return self.memory // _KIBIBYTE if self.memory else None

    def for_jpsi(self, *, on_one_node: bool = False) -> jpsi.ResourceSpecV1:
        """Return the same resources for jpsi; with `on_one_node` the same number of processes on one node."""
        resources = jpsi.ResourceSpecV1.uneven(**attrs.asdict(self))
        if not on_one_node:
            return resources
        count = resources.computed_process_count
        return attrs.evolve(resources, node_count=None, processes_per_node=None, process_count=count)
