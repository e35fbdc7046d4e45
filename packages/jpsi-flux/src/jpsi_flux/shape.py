"""Converts a job's resources into Flux's terms: slots with cores and GPUs, on a number of nodes.

`directives`, `submit` and `bulk` use it to choose between `flux submit` and `flux batch`, and their options.
"""

from __future__ import annotations

from typing import Self

import attrs

from jpsi.plugin import JobSpec, node_count, resources

# Launchers that start the job's processes without Flux, on the node of the script.
_LAUNCHERS_ON_NODE = frozenset({None, "single", "multiple"})


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """The resources of a job in Flux's terms."""

    #: The number of processes.
    processes: int = 1
    #: The number of slots, which may be larger.
    slots: int = 1
    #: The number of nodes; None leaves it to Flux (J/PSI 0: setProcessCount).
    nodes: int | None = None
    cores: int | None = None
    gpus: int | None = None
    #: True if the job needs exclusive use of its nodes.
    exclusive: bool = False
    #: True if the job is its own Flux instance, in which `flux run` starts processes on its nodes. An
    #: instance takes a second or more to start, which a single process does not need.
    nested: bool = False

    @classmethod
    def for_spec(cls, spec: JobSpec) -> Self:
        """Return the resources of a valid spec."""
        requested = resources(spec)
        nodes = node_count(requested)
        # Flux allocates the same number of slots on each node.
        per_node = requested.computed_processes_per_node
        processes = requested.computed_process_count
        slots = processes if nodes is None else nodes * per_node
        return cls(
            processes=processes,
            slots=slots,
            nodes=nodes,
            cores=requested.cpu_cores_per_process,
            gpus=requested.gpu_cores_per_process or None,
            exclusive=requested.exclusive_node_use,
            nested=slots > 1 or spec.launcher not in _LAUNCHERS_ON_NODE,
        )
