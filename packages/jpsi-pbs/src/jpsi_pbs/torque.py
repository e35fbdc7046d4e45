"""The executor `torque`: Torque, 4 or later."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobAttributes, JobSpec, Options, ResourceSpecV1, ShellLine, resources, units

from . import xml_jobs
from .ends import torque_end
from .hooks import Hooks
from .layout import Part, layout
from .script import script_form

_KIBIBYTE = 1 << 10


class Torque(Hooks):
    """What is said and asked in Torque's way."""

    name = "torque"
    form = script_form((name, "pbs_classic"), {})
    # XML; finished jobs are in it for `keep_completed` seconds.
    qstat = ("qstat", "-f", "-x")
    # Each id that is named is a connection, so that it is cheaper to list all jobs than to name many.
    most_ids = 100_000
    most_named = 25

    jobs = staticmethod(xml_jobs.jobs)
    end_of = staticmethod(torque_end)

    def node_lines(self, spec: JobSpec) -> list[ShellLine]:
        """A line of the file for each core."""
        cores = resources(spec).cpu_cores_per_process or 1
        return [ShellLine(f"awk 'NR % {cores} == 0' \"$PBS_NODEFILE\"")]

    def resources(self, asked: ResourceSpecV1) -> Options:
        """The nodes, with a virtual processor for each core; "Requesting Resources" in the Torque manual."""
        # Torque cannot choose the number of nodes.
        parts = layout(asked) or [Part(1, asked.computed_process_count)]
        return {
            "l.nodes": "+".join(f"{it.nodes}:{_node(asked, it.processes)}" for it in parts),
            "l.mem": None if asked.memory is None else f"{units(asked.memory, _KIBIBYTE)}kb",
            "n": asked.exclusive_node_use,
        }

    def queue_problems(self, asked: JobAttributes) -> Sequence[str]:
        """Why a job cannot be sent there."""
        if asked.reservation_id is None:
            return []
        moab = "the custom attribute torque.W.x, such as FLAGS:ADVRES:name"
        return [f"attributes.reservation_id: Torque has no reservations; for those of Moab set {moab}"]


def _node(asked: ResourceSpecV1, processes: int) -> str:
    parts = [f"ppn={processes * (asked.cpu_cores_per_process or 1)}"]
    if asked.gpu_cores_per_process:
        parts.append(f"gpus={processes * asked.gpu_cores_per_process}")
    return ":".join(parts)


hooks = Torque()
