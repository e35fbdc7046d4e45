"""What a spec says about the processes to start, as far as it says it."""

from __future__ import annotations

import attrs

from jpsi.plugin import JobSpec, ResourceSpecV1, components, node_count, resources


@attrs.frozen(slots=True, kw_only=True)
class ProcessLayout:
    """How many processes there are, and what each of them gets.

    None is what the user left open: there the batch system has decided, and the launcher must not.
    """

    processes: int
    nodes: int | None
    #: The largest number of processes on a node, where the user has given that or the number of nodes.
    per_node: int | None
    #: The same where the user has given that, and the batch system has been told.
    told_per_node: int | None
    cores: int | None
    gpus: int

    @property
    def is_uneven(self) -> bool:
        """Whether the last of the nodes has less processes than the first."""
        each = self.told_per_node or self.per_node or self.processes
        return self.processes != (self.nodes or 1) * each

    @classmethod
    def of(cls, spec: JobSpec) -> ProcessLayout:
        """The layout of a valid spec whose slots are of one kind."""
        return cls._of(resources(spec))

    @classmethod
    def of_each(cls, spec: JobSpec) -> list[ProcessLayout]:
        """The layouts of all kinds of slots of a valid spec, in their order."""
        return [cls._of(it) for it in components(spec.resources)]

    @classmethod
    def _of(cls, given: ResourceSpecV1) -> ProcessLayout:
        # A number of processes alone may end up on any number of nodes.
        nodes = node_count(given)
        return cls(
            processes=given.computed_process_count,
            nodes=nodes,
            per_node=None
            if nodes is None
            else min(given.computed_processes_per_node, given.computed_process_count),
            told_per_node=given.processes_per_node,
            cores=given.cpu_cores_per_process,
            gpus=given.gpu_cores_per_process or 0,
        )
