"""Heterogeneous jobs in the fake of Slurm: each is one job, with a line of squeue per component."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jpsi_testing.fake import FakeJob, FakeScheduler

from .arrays import NUMBERS

# Slurm 22.05: the options that a component does not inherit from the one before
_OF_EACH = frozenset(
    {"constraint", "cpus-per-task", "exclusive", "gpus-per-task", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition"}
)
_MEMORY = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_NODES = 2


def all_of(first: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the options of each component, with those that it inherits from the one before."""
    parts = [first]
    for own in others:
        taken = {name: value for name, value in parts[-1].items() if name not in _OF_EACH}
        parts.append({**taken, **own})
    return parts


def contradiction(parts: Sequence[Mapping[str, str]]) -> str | None:
    """Return the message with which sbatch itself refuses options; None if it does not."""
    if any(len(_MEMORY & part.keys()) > 1 for part in parts):
        return "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
    return None


def refusal(parts: Sequence[Mapping[str, str]]) -> str | None:
    """Return the reason why Slurm refuses these components together; None if it does not."""
    if len(parts) > 1 and "array" in parts[0]:
        return "Invalid job array specification"
    return None


def together(scheduler: FakeScheduler, job: FakeJob, parts: Sequence[Mapping[str, str]]) -> None:
    """Make a job heterogeneous: each component gets a number and its own node."""
    job.attributes[NUMBERS] = [job.native_id, *(str(scheduler.next_number()) for _ in parts[1:])]
    job.attributes["placed"] = [_node(group) for group in range(len(parts))]
    job.slots = sum(int(part.get("ntasks", "1")) for part in parts)


def variables(job: FakeJob, parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the script's variables about its components; sbatch(1), OUTPUT ENVIRONMENT VARIABLES."""
    found = {"SLURM_HET_SIZE": str(len(parts))}
    for group, part in enumerate(parts):
        tasks = part.get("ntasks", "1")
        told = {
            "SLURM_JOB_ID": job.attributes[NUMBERS][group],
            "SLURM_JOB_NODELIST": _node(group),
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NTASKS": tasks,
            "SLURM_TASKS_PER_NODE": part.get("ntasks-per-node", tasks),
        }
        found.update((f"{name}_HET_GROUP_{group}", value) for name, value in told.items())
    return found


def _node(group: int) -> str:
    return f"node{group % _NODES + 1:02}"
