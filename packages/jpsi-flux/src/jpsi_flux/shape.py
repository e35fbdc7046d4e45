"""What a job needs in Flux's terms: slots, each with cores and GPUs, on so many nodes."""

from __future__ import annotations

from typing import Self

import attrs

from jpsi.plugin import JobSpec, ResourceSpecV1

# Those that start the job's processes without Flux's help, on the node where the script runs.
_ON_THE_SPOT = frozenset({None, "single", "multiple"})


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """The resources of a job."""

    #: How many processes there is room for.
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
        resources = spec.resources
        if not isinstance(resources, ResourceSpecV1):
            return cls(nested=spec.launcher not in _ON_THE_SPOT)
        spread = resources.node_count is not None or resources.processes_per_node is not None
        nodes = resources.computed_node_count if spread else None
        processes = resources.computed_process_count
        # Flux gives each node the same number of slots.
        slots = processes if nodes is None else nodes * resources.computed_processes_per_node
        return cls(
            slots=slots,
            nodes=nodes,
            cores=resources.cpu_cores_per_process,
            gpus=resources.gpu_cores_per_process or None,
            exclusive=resources.exclusive_node_use,
            nested=slots > 1 or spec.launcher not in _ON_THE_SPOT,
        )

    def options(self) -> dict[str, str | None]:
        """The options that ask for it: flux-batch(1) if nested, else flux-submit(1)."""
        each = "slot" if self.nested else "task"
        # One process is on one node, and only a number of nodes can be had exclusively.
        nodes = 1 if self.exclusive and self.slots == 1 else self.nodes
        amounts = {
            "nodes": nodes,
            f"n{each}s": self.slots,
            f"cores-per-{each}": self.cores,
            f"gpus-per-{each}": self.gpus,
        }
        options: dict[str, str | None] = {
            name: str(amount) for name, amount in amounts.items() if amount is not None
        }
        return {**options, "exclusive": None} if self.exclusive else options
