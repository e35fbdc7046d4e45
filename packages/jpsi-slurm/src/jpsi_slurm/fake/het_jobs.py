"""Heterogeneous jobs over a fake batch system: each is one job, of whose components each has a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jpsi_testing.fake import FakeJob, FakeScheduler

from .arrays import NUMBERS

# Slurm 22.05: what sbatch does not take over from the component before
_OF_EACH = frozenset(
    {"constraint", "cpus-per-task", "exclusive", "gpus-per-task", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition"}
)
_MEMORY = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_NODES = 2


def all_of(first: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The options of each component, with what it takes over from the one before it."""
    parts = [first]
    for own in others:
        taken = {name: value for name, value in parts[-1].items() if name not in _OF_EACH}
        parts.append({**taken, **own})
    return parts


def contradiction(parts: Sequence[Mapping[str, str]]) -> str | None:
    """What sbatch refuses without asking Slurm."""
    if any(len(_MEMORY & part.keys()) > 1 for part in parts):
        return "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
    return None


def refusal(parts: Sequence[Mapping[str, str]]) -> str | None:
    """Why components cannot be had together."""
    if len(parts) > 1 and "array" in parts[0]:
        return "Invalid job array specification"
    return None


def together(scheduler: FakeScheduler, job: FakeJob, parts: Sequence[Mapping[str, str]]) -> None:
    """Make a job heterogeneous: each component has a number, and a node to itself."""
    job.attributes[NUMBERS] = [job.native_id, *(str(scheduler.next_number()) for _ in parts[1:])]
    job.attributes["placed"] = [_node(group) for group in range(len(parts))]
    job.slots = sum(int(part.get("ntasks", "1")) for part in parts)


def variables(job: FakeJob, parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What the script knows of its components; sbatch(1), OUTPUT ENVIRONMENT VARIABLES."""
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
