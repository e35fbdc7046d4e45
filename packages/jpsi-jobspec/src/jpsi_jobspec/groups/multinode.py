"""Launches a task on several nodes of a group by a launcher, where the pilot's engine does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi import JobSpec, ResourceSpecV1, escape

# The pilot has chosen the nodes, and names them in the file that srun goes by then. It has chosen the GPUs as
# well, while a step would get the first ones of each node, whoever has these.
# Without memory of its own a step shares that of the group: srun(1), --mem.
_OPTIONS = {"srun.distribution": "arbitrary", "srun.gpus-per-task": False, "srun.mem": "0"}
# srun(1), INPUT ENVIRONMENT VARIABLES: what was asked for the group would be asked for the step as well.
_OF_THE_GROUP: Mapping[str, str | None] = {"SLURM_GPUS_PER_TASK": None}
# A step sees all GPUs that the allocation has on a node.
_OWN_DEVICES = """\
while read -r node variable; do
  [ "$node" != "$SLURMD_NODENAME" ] || export "$variable"
done <<END
$JPSI_PILOT_DEVICES
END
exec "$@"
"""


def node_count(spec: JobSpec) -> int:
    """Return how many nodes a spec asks for."""
    return (spec.resources.node_count or 1) if isinstance(spec.resources, ResourceSpecV1) else 1


def name_nodes(spec: JobSpec, cores: int, gpus: int) -> None:
    """Have a spec whose processes may be anywhere ask for as many nodes as it takes.

    Args:
        spec: what is to run in a pilot.
        cores: what each node of that has.
        gpus: the same.
    """
    asked = spec.resources
    if not isinstance(asked, ResourceSpecV1) or asked.node_count is not None:
        return
    most = cores // (asked.cpu_cores_per_process or 1)
    if asked.gpu_cores_per_process:
        most = min(most, gpus // asked.gpu_cores_per_process)
    if 0 < most < asked.computed_process_count:
        asked.node_count = -(-asked.computed_process_count // most)


def launch_on_nodes(spec: JobSpec, launcher: str) -> None:
    """Have a launcher start the processes of a spec on the nodes and GPUs that the pilot chooses."""
    spec.launcher = launcher
    spec.environment = {**_OF_THE_GROUP, **(spec.environment or {})}
    spec.attributes.custom_attributes = {**(spec.attributes.custom_attributes or {}), **_OPTIONS}
    if isinstance(spec.resources, ResourceSpecV1) and spec.resources.gpu_cores_per_process:
        own = [escape(_OWN_DEVICES), "task", spec.executable or "", *(spec.arguments or ())]
        spec.executable, spec.arguments = "/bin/sh", ["-c", *own]
