"""Converts a job's processes into slots and chooses the parallel environment.

`directives` uses it to write the option `-pe`, without which a job has one slot.
"""

from __future__ import annotations

from jpsi.plugin import ResourceSpecV1, node_count

from .config import SLOTS_PLACEHOLDER, GridEngineConfig

_CONFIGURE = "in the executor's configuration (`qconf -spl` lists those of the site)"


def count_slots(resources: ResourceSpecV1) -> int:
    """Return the number of slots that a job needs, one per CPU core."""
    return resources.computed_process_count * (resources.cpu_cores_per_process or 1)


def parallel_environment(resources: ResourceSpecV1, config: GridEngineConfig) -> str | None:
    """Return the parallel environment for a job, with the slots; None for a job with one slot.

    The environment defines how slots are spread over nodes, so that the configuration must name one that
    matches the job's layout.

    Raises:
        ValueError: no configured environment matches.
    """
    total = count_slots(resources)
    return None if total == 1 else f"{_environment_name(resources, config, total)} {total}"


def _environment_name(resources: ResourceSpecV1, config: GridEngineConfig, total: int) -> str:
    nodes, cores = node_count(resources), resources.cpu_cores_per_process or 1
    spread, one_node = config.parallel_environment, config.node_environment
    # All cores of a process must be on one node.
    is_on_one_node = nodes == 1 or (nodes is None and cores > 1)
    if is_on_one_node and one_node is not None:
        return one_node.replace(SLOTS_PLACEHOLDER, str(total))
    if spread is not None and SLOTS_PLACEHOLDER in spread:
        per_node = total if nodes is None else resources.computed_processes_per_node * cores
        if total % per_node == 0:
            return spread.replace(SLOTS_PLACEHOLDER, str(per_node))
        msg = (
            f"Grid Engine gives each node the same number of slots, and {total} slots are no multiple of "
            f"{per_node}"
        )
        raise ValueError(msg)
    default = spread or one_node
    if nodes is None and not is_on_one_node and default is not None:
        return default
    raise ValueError(_missing_environment(total, nodes, is_on_one_node=is_on_one_node))


def _missing_environment(total: int, nodes: int | None, *, is_on_one_node: bool) -> str:
    if is_on_one_node:
        return f"{total} slots on one node: name a parallel environment as `node_environment` {_CONFIGURE}"
    if nodes is None:
        return f"{total} slots: name a parallel environment as `parallel_environment` {_CONFIGURE}"
    return (
        f"{total} slots on {nodes} nodes: Grid Engine has no option for the slots of each node; give only "
        f"process_count, or name a family of parallel environments as `parallel_environment`, such as "
        f"mpi-{SLOTS_PLACEHOLDER}, {_CONFIGURE}, or one in the custom attribute gridengine.pe"
    )
