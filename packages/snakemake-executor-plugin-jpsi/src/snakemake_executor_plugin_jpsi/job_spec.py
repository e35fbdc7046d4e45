"""Translates the resources of a rule of Snakemake to a jpsi.JobSpec."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

import jpsi

# Snakemake's mem_mb is in megabytes, its runtime in minutes.
# https://snakemake.readthedocs.io/en/stable/snakefiles/rules.html#standard-resources
_MEGABYTE = 10**6

# The names that rules give to the queue and to the account, the first that is set counts.
_QUEUE = ("jpsi_queue", "slurm_partition")
_PROJECT = ("jpsi_project", "slurm_account")


def make_job_spec(
    command: str, name: str, threads: int, resources: Mapping[str, Any], environment: Mapping[str, str]
) -> jpsi.JobSpec:
    """Return the spec of a job of a workflow.

    Args:
        command: the line of POSIX shell that runs the job, as Snakemake makes it.
        name: the name of the rule or group.
        threads: the threads of the rule.
        resources: the resources of the rule; those that jpsi does not know are ignored, as Snakemake's own
            scheduler may count them.
        environment: the variables that the workflow declares.

    Raises:
        ResourceError: a resource has no value that a job can request.
    """
    requested = _Requested(name, resources)
    process_count = requested.number("tasks") or 1
    cores = requested.number("cpus_per_task") or max(threads, 1)
    return jpsi.JobSpec(
        "/bin/sh",
        ["-c", jpsi.escape(command)],
        name=name,
        environment={key: jpsi.escape(value) for key, value in environment.items()},
        resources=jpsi.ResourceSpecV1.uneven(
            node_count=requested.number("nodes"),
            process_count=process_count,
            cpu_cores_per_process=cores,
            gpu_cores_per_process=requested.gpus_per_process(process_count),
            memory=requested.memory(process_count * cores),
        ),
        attributes=jpsi.JobAttributes(
            duration=requested.duration(),
            queue_name=requested.text(_QUEUE),
            project_name=requested.text(_PROJECT),
            custom_attributes=requested.attributes(),
        ),
        # a job of several processes starts them itself: `{resources.mpi} -n {resources.tasks}` of its rule
        launcher="single",
    )


class ResourceError(WorkflowError):
    """A resource of a rule has a value that no job can request."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"rule {rule}: {why}")


class _Requested:
    """The resources of one rule, read with errors that name the rule."""

    def __init__(self, rule: str, resources: Mapping[str, Any]) -> None:
        self._rule = rule
        self._resources = resources

    def number(self, name: str) -> int | None:
        """Return a count; None if it is not set.

        Raises:
            ResourceError: it is no whole number, or less than 0.
        """
        value = self._read(name, "a whole number")
        if value is not None and value != int(value):
            raise ResourceError(self._rule, f"{name}={value} is not a whole number")
        return None if value is None else int(value)

    def gpus_per_process(self, process_count: int) -> int | None:
        """Return the GPUs of each process: `gpu` counts those of the job."""
        gpus = self.number("gpu")
        if gpus is None:
            return None
        if gpus % process_count:
            raise ResourceError(self._rule, f"gpu={gpus} cannot be shared equally by tasks={process_count}")
        return gpus // process_count

    def memory(self, cores: int) -> int | None:
        """Return the memory of the job in bytes: `mem_mb`, or else `mem_mb_per_cpu` for each of its cores."""
        megabytes = self.number("mem_mb")
        per_core = self.number("mem_mb_per_cpu")
        if megabytes is None and per_core is not None:
            megabytes = per_core * cores
        return None if megabytes is None else megabytes * _MEGABYTE

    def duration(self) -> timedelta | None:
        """Return the time limit, which `runtime` has in minutes."""
        minutes = self._read("runtime", "a number of minutes")
        return None if minutes is None else timedelta(minutes=minutes)

    def text(self, names: tuple[str, ...]) -> str | None:
        """Return the first of these resources that is set."""
        return next((str(it) for name in names if (it := self._resources.get(name))), None)

    def attributes(self) -> dict[str, str]:
        """Return the custom attributes in `jpsi_attributes`, such as `slurm.qos=debug,slurm.requeue`."""
        words = str(self._resources.get("jpsi_attributes") or "").split(",")
        pairs = (word.strip().partition("=") for word in words if word.strip())
        return {name: value for name, _, value in pairs}

    def _read(self, name: str, meaning: str) -> float | None:
        value = self._resources.get(name)
        if value is None or value == "":
            return None
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ResourceError(self._rule, f"{name}={value!r} is not {meaning}") from None
        if not 0 <= number < float("inf"):
            raise ResourceError(self._rule, f"{name}={value!r} is not {meaning}")
        return number
