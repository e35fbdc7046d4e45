"""Heterogeneous jobs in the fake of Slurm: each is one job, with a line of squeue per component."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jpsi_testing.fake import FakeJob, FakeScheduler

from .arrays import COMPONENT_NUMBERS

# Slurm 22.05: the options that a component does not inherit from the one before
_NOT_INHERITED = frozenset(
    {"constraint", "cpus-per-task", "exclusive", "gpus-per-task", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition"}
)
_MEMORY = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_NODES = 2


def inherit_options(first: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the options of each component, with those that it inherits from the one before."""
    components = [first]
    for own in others:
        inherited = {name: value for name, value in components[-1].items() if name not in _NOT_INHERITED}
        components.append({**inherited, **own})
    return components


def conflicting_options(components: Sequence[Mapping[str, str]]) -> str | None:
    """Return the message with which sbatch itself refuses options; None if it does not."""
    if any(len(_MEMORY & part.keys()) > 1 for part in components):
        return "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
    return None


def refusal(components: Sequence[Mapping[str, str]]) -> str | None:
    """Return the reason why Slurm refuses these components together; None if it does not."""
    if len(components) > 1 and "array" in components[0]:
        return "Invalid job array specification"
    return None


def make_heterogeneous(
    scheduler: FakeScheduler, job: FakeJob, components: Sequence[Mapping[str, str]]
) -> None:
    """Make a job heterogeneous: each component gets a number and its own node."""
    job.attributes[COMPONENT_NUMBERS] = [
        job.native_id,
        *(str(scheduler.next_number()) for _ in components[1:]),
    ]
    job.attributes["placed"] = [_node(group) for group in range(len(components))]
    job.slots = sum(int(part.get("ntasks", "1")) for part in components)


def variables(job: FakeJob, components: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the script's variables about its components; sbatch(1), OUTPUT ENVIRONMENT VARIABLES."""
    component_variables = {"SLURM_HET_SIZE": str(len(components))}
    for group, part in enumerate(components):
        tasks = part.get("ntasks", "1")
        values = {
            "SLURM_JOB_ID": job.attributes[COMPONENT_NUMBERS][group],
            "SLURM_JOB_NODELIST": _node(group),
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NTASKS": tasks,
            "SLURM_TASKS_PER_NODE": part.get("ntasks-per-node", tasks),
        }
        component_variables.update((f"{name}_HET_GROUP_{group}", value) for name, value in values.items())
    return component_variables


def _node(group: int) -> str:
    return f"node{group % _NODES + 1:02}"
