"""Derives the layout of a job's processes from its spec, for the launchers."""

from __future__ import annotations

import attrs

from jpsi.plugin import JobSpec, components, node_count


@attrs.frozen(slots=True, kw_only=True)
class ProcessLayout:
    """The number of processes of a job or component, and the resources of each.

    None means that the user left a value open: the batch system has chosen it, and the launcher must not set
    it.
    """

    processes: int
    nodes: int | None
    #: The largest number of processes on a node, if the user gave that or the number of nodes.
    per_node: int | None
    #: The processes per node, only if the user gave them; the batch system then has them too.
    requested_per_node: int | None
    cores: int | None
    gpus: int

    @property
    def is_uneven(self) -> bool:
        """True if the last node has fewer processes than the first."""
        each = self.requested_per_node or self.per_node or self.processes
        return self.processes != (self.nodes or 1) * each

    @classmethod
    def from_components(cls, spec: JobSpec) -> list[ProcessLayout]:
        """Return the layouts of all components of a valid spec, in their order."""
        return [
            cls(
                processes=it.computed_process_count,
                # Without more than a number of processes, the number of nodes is open.
                nodes=node_count(it),
                per_node=None
                if node_count(it) is None
                else min(it.computed_processes_per_node, it.computed_process_count),
                requested_per_node=it.processes_per_node,
                cores=it.cpu_cores_per_process,
                gpus=it.gpu_cores_per_process or 0,
            )
            for it in components(spec.resources)
        ]
