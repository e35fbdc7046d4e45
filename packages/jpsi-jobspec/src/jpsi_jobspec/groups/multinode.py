"""Launches a task on several nodes of a group by a launcher, if the pilot's engine cannot. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi import JobSpec, ResourceSpecV1, escape

# The pilot has chosen the nodes, and names them in a file for srun. It has chosen the GPUs as well, while a
# step would get the first ones of each node, even if another task has them. Without memory of its own a step
# shares that of the group: srun(1), --mem.
_OPTIONS = {"srun.distribution": "arbitrary", "srun.gpus-per-task": False, "srun.mem": "0"}
# srun(1), INPUT ENVIRONMENT VARIABLES: the step would ask for what the group has asked for as well.
_UNSET_GROUP_VARIABLES: Mapping[str, str | None] = {"SLURM_GPUS_PER_TASK": None}
# A step sees all GPUs that the allocation has on a node.
_SELECT_DEVICES = """\
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


def set_node_count(spec: JobSpec, cores: int, gpus: int) -> None:
    """Set the number of nodes for a spec whose processes may be on any nodes.

    Args:
        spec: of a job for a pilot.
        cores: of each node of the pilot.
        gpus: of each node of the pilot.
    """
    resources = spec.resources
    if not isinstance(resources, ResourceSpecV1) or resources.node_count is not None:
        return
    processes_per_node = cores // (resources.cpu_cores_per_process or 1)
    if resources.gpu_cores_per_process:
        processes_per_node = min(processes_per_node, gpus // resources.gpu_cores_per_process)
    if 0 < processes_per_node < resources.computed_process_count:
        resources.node_count = -(-resources.computed_process_count // processes_per_node)


def launch_on_nodes(spec: JobSpec, launcher: str) -> None:
    """Have a launcher start the processes of a spec on the nodes and GPUs that the pilot chooses."""
    spec.launcher = launcher
    spec.environment = {**_UNSET_GROUP_VARIABLES, **(spec.environment or {})}
    spec.attributes.custom_attributes = {**(spec.attributes.custom_attributes or {}), **_OPTIONS}
    if isinstance(spec.resources, ResourceSpecV1) and spec.resources.gpu_cores_per_process:
        wrapped = [escape(_SELECT_DEVICES), "task", spec.executable or "", *(spec.arguments or ())]
        spec.executable, spec.arguments = "/bin/sh", ["-c", *wrapped]
