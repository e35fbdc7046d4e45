"""The nodes of a job's processes, as LSF tells a running job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, Site, hookimpl, resources

from .options import CUSTOM
from .resources import slots_per_process

# "Environment variables set for job execution" of LSF 10.1: a file with the node of each slot; what is
# compatible with older versions has only the list of nodes and numbers, `node1 2 node2 2 `.
_EACH_SLOT = (
    'if [ -r "${LSB_DJOB_HOSTFILE-}" ]; then cat "$LSB_DJOB_HOSTFILE"; '
    "else printf '%s\\n' \"${LSB_MCPU_HOSTS-}\" | awk '"
    "{ for (i = 1; i < NF; i += 2) for (n = $(i + 1); n > 0; n--) print $i }'; fi"
)


@hookimpl
def nodes(spec: JobSpec, site: Site) -> list[ShellLine]:
    """Shell that prints the node of each process, one on a line, grouped by node."""
    if "nnodes" in CUSTOM.of(spec):
        return [ShellLine(f"{{ {_EACH_SLOT}; }} | awk '{_of_whole_nodes(resources(spec))}'")]
    slots = slots_per_process(resources(spec), site.config)
    # the slots of a process are on one node, and those of a node come one after the other
    every = "" if slots == 1 else f" | awk 'NR % {slots} == 1'"
    return [ShellLine(f"{{ {_EACH_SLOT}; }}{every}")]


def _of_whole_nodes(asked: ResourceSpecV1) -> str:
    """Awk that spreads the processes over whole nodes; `-nnodes` is of clusters with CSM.

    There the first node launches the job and runs none of them, and every core of the others is a slot.
    """
    count, most = asked.computed_process_count, asked.processes_per_node or 0
    return (
        "!seen[$0]++ { node[k++] = $0 } "
        f"END {{ if (k > 1) {{ most = {most}; if (!most) most = int(({count} + k - 2) / (k - 1)); "
        f"for (i = 0; i < {count} && int(i / most) + 1 < k; i++) print node[int(i / most) + 1] }} }}"
    )
