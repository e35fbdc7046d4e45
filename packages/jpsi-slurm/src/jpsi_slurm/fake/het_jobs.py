"""Heterogeneous jobs in the fake of Slurm: each is one job, with a line of squeue per component.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jpsi_testing.fake import FakeJob, FakeScheduler, node_name

from .states import COMPONENT_NODES, COMPONENT_NUMBERS

# Slurm 22.05: the options that a component does not inherit from the one before
_NOT_INHERITED = frozenset(
    {"constraint", "cpus-per-task", "exclusive", "gpus-per-task", "licenses", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition"}
)
_NODES = 2


def inherit_options(first: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the options of each component, with those that it inherits from the one before."""
    components = [first]
    for own in others:
        inherited = {name: value for name, value in components[-1].items() if name not in _NOT_INHERITED}
        components.append({**inherited, **own})
    return components


def make_heterogeneous(
    scheduler: FakeScheduler, job: FakeJob, components: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Make a job heterogeneous: each component gets a number and its own node; return the script's variables.

    sbatch(1), OUTPUT ENVIRONMENT VARIABLES, describes them.
    """
    numbers = [job.native_id, *(str(scheduler.next_number()) for _ in components[1:])]
    nodes = [node_name(group % _NODES) for group in range(len(components))]
    job.attributes |= {COMPONENT_NUMBERS: numbers, COMPONENT_NODES: nodes}
    job.slots = sum(int(part.get("ntasks", "1")) for part in components)
    variables = {"SLURM_HET_SIZE": str(len(components))}
    for group, part in enumerate(components):
        tasks = part.get("ntasks", "1")
        values = {
            "SLURM_JOB_ID": numbers[group],
            "SLURM_JOB_NODELIST": nodes[group],
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NTASKS": tasks,
            "SLURM_TASKS_PER_NODE": part.get("ntasks-per-node", tasks),
        }
        variables.update((f"{name}_HET_GROUP_{group}", value) for name, value in values.items())
    return variables
