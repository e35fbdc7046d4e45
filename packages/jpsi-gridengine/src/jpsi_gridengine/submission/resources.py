"""Converts a job's processes into slots and chooses the parallel environment."""

from __future__ import annotations

from jpsi.plugin import ResourceSpecV1, node_count

from ..config import SLOTS, GridEngineConfig

_CONFIGURE = "in the executor's configuration (`qconf -spl` lists those of the site)"


def slots(resources: ResourceSpecV1) -> int:
    """Return the number of slots that a job needs, one per CPU core."""
    return resources.computed_process_count * _cores(resources)


def environment(resources: ResourceSpecV1, config: GridEngineConfig) -> str | None:
    """Return the parallel environment for a job, with the slots; None for a job with one slot.

    The environment defines how slots are spread over nodes, so that the configuration must name one that
    matches the job's layout.

    Raises:
        ValueError: no configured environment matches.
    """
    total = slots(resources)
    return None if total == 1 else f"{_name(resources, config, total)} {total}"


def _name(resources: ResourceSpecV1, config: GridEngineConfig, total: int) -> str:
    nodes, cores = node_count(resources), _cores(resources)
    several, single = config.parallel_environment, config.node_environment
    # All cores of a process must be on one node.
    is_together = nodes == 1 or (nodes is None and cores > 1)
    if is_together and single is not None:
        return single.replace(SLOTS, str(total))
    if several is not None and SLOTS in several:
        each = total if nodes is None else resources.computed_processes_per_node * cores
        if total % each == 0:
            return several.replace(SLOTS, str(each))
        msg = (
            f"Grid Engine gives each node the same number of slots, which {total} slots, {each} each, are not"
        )
        raise ValueError(msg)
    either = several or single
    if nodes is None and not is_together and either is not None:
        return either
    raise ValueError(_lacking(total, nodes, is_together=is_together))


def _lacking(total: int, nodes: int | None, *, is_together: bool) -> str:
    if is_together:
        return f"{total} slots on one node: name a parallel environment as `node_environment` {_CONFIGURE}"
    if nodes is None:
        return f"{total} slots: name a parallel environment as `parallel_environment` {_CONFIGURE}"
    return (
        f"{total} slots on {nodes} nodes: Grid Engine cannot be told how many go to each node; give only "
        f"process_count, or name a family of parallel environments as `parallel_environment`, such as "
        f"mpi-{SLOTS}, {_CONFIGURE}, or one in the custom attribute gridengine.pe"
    )


def _cores(resources: ResourceSpecV1) -> int:
    return resources.cpu_cores_per_process or 1
