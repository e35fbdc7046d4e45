"""The executor `torque`: Torque, 4 or later."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1, ShellLine, units

from . import xml_jobs
from .ends import End, torque_end
from .hooks import Hooks
from .layout import Part, layout
from .listed import Listed
from .options import Options

_KIBIBYTE = 1 << 10


class Torque(Hooks):
    """What is said and asked in Torque's way."""

    name = "torque"
    # XML; finished jobs are in it for `keep_completed` seconds.
    qstat = ("qstat", "-f", "-x")
    # Each id that is named is a connection, so that it is cheaper to list all jobs than to name many.
    most_ids = 100_000
    most_named = 25

    def jobs(self, output: str) -> list[Listed] | None:
        """What qstat has listed; None if that is not whole."""
        return xml_jobs.jobs(output)

    def end_of(self, job: Listed) -> End:
        """What qstat says of a job that has ended."""
        return torque_end(job)

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """A line of the file for each core."""
        resources = spec.resources
        cores = resources.cpu_cores_per_process if isinstance(resources, ResourceSpecV1) else None
        return [ShellLine(f"awk 'NR % {cores or 1} == 0' \"$PBS_NODEFILE\"")]

    def resources(self, resources: ResourceSpecV1) -> Options:
        """The nodes, with a virtual processor for each core; "Requesting Resources" in the Torque manual."""
        parts = _parts(resources)
        options = {"-l nodes": "+".join(f"{it.nodes}:{_node(resources, it.processes)}" for it in parts)}
        if resources.memory is not None:
            options["-l mem"] = f"{units(resources.memory, _KIBIBYTE)}kb"
        return {**options, **({"-n": None} if resources.exclusive_node_use else {})}

    def queue_problems(self, attributes: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""
        if attributes.reservation_id is None:
            return []
        moab = "the custom attribute torque.W.x, such as FLAGS:ADVRES:name"
        return [f"attributes.reservation_id: Torque has no reservations; for those of Moab set {moab}"]


def _parts(resources: ResourceSpecV1) -> list[Part]:
    # Torque cannot choose the number of nodes.
    return layout(resources) or [Part(1, resources.computed_process_count)]


def _node(resources: ResourceSpecV1, processes: int) -> str:
    parts = [f"ppn={processes * (resources.cpu_cores_per_process or 1)}"]
    if resources.gpu_cores_per_process:
        parts.append(f"gpus={processes * resources.gpu_cores_per_process}")
    return ":".join(parts)


hooks = Torque()
