"""What a job needs in Flux's terms: slots, each with cores and GPUs, on so many nodes."""

from __future__ import annotations

from typing import Self

import attrs

from jpsi.plugin import JobSpec, Options, node_count, resources

# Those that start the job's processes without Flux's help, on the node where the script runs.
_ON_THE_SPOT = frozenset({None, "single", "multiple"})


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """The resources of a job."""

    #: How many processes there are.
    processes: int = 1
    #: How many there is room for.
    slots: int = 1
    #: On how many nodes they are spread; None leaves it to Flux (J/PSI 0: setProcessCount).
    nodes: int | None = None
    cores: int | None = None
    gpus: int | None = None
    #: Whether nobody else gets these nodes.
    exclusive: bool = False
    #: Whether the job is a Flux instance of its own, in which `flux run` starts processes on its nodes. That
    #: costs a second and more, which one process does not need.
    nested: bool = False

    @classmethod
    def of(cls, spec: JobSpec) -> Self:
        """The shape of a valid spec."""
        asked = resources(spec)
        nodes = node_count(asked)
        # Flux gives each node the same number of slots.
        each = asked.computed_processes_per_node
        processes = asked.computed_process_count
        slots = processes if nodes is None else nodes * each
        return cls(
            processes=processes,
            slots=slots,
            nodes=nodes,
            cores=asked.cpu_cores_per_process,
            gpus=asked.gpu_cores_per_process or None,
            exclusive=asked.exclusive_node_use,
            nested=slots > 1 or spec.launcher not in _ON_THE_SPOT,
        )

    def options(self) -> Options:
        """The options that ask for it: flux-batch(1) if nested, else flux-submit(1)."""
        each = "slot" if self.nested else "task"
        return {
            # One process is on one node, and only a number of nodes can be had exclusively.
            "nodes": 1 if self.exclusive and self.slots == 1 else self.nodes,
            f"n{each}s": self.slots,
            f"cores-per-{each}": self.cores,
            f"gpus-per-{each}": self.gpus,
            "exclusive": self.exclusive,
        }
