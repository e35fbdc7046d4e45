"""Renders the shell lines that print the node of each process, from the variables that LSF sets."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, Site, components, hookimpl, resources

from ..options import CUSTOM
from .resources import slots_per_process

# "Environment variables set for job execution" of LSF 10.1: a file with the node of each slot; systems
# compatible with older versions have only the list of nodes and numbers, `node1 2 node2 2 `.
_EACH_SLOT = (
    'if [ -r "${LSB_DJOB_HOSTFILE-}" ]; then cat "$LSB_DJOB_HOSTFILE"; '
    "else printf '%s\\n' \"${LSB_MCPU_HOSTS-}\" | awk '"
    "{ for (i = 1; i < NF; i += 2) for (n = $(i + 1); n > 0; n--) print $i }'; fi"
)


@hookimpl
def nodes(spec: JobSpec, site: Site) -> list[ShellLine]:
    """Return shell that prints the node of each process, one per line, grouped by node."""
    if "nnodes" in CUSTOM.of(spec):
        return [ShellLine(f"{{ {_EACH_SLOT}; }} | awk '{_of_whole_nodes(resources(spec))}'")]
    kinds = [
        (it.computed_process_count, slots_per_process(it, site.config)) for it in components(spec.resources)
    ]
    # the slots of a process are on one node; the slots of a node, and those of a component, are consecutive
    every = f" | awk '{_of_processes(kinds)}'" if any(slots > 1 for _, slots in kinds) else ""
    return [ShellLine(f"{{ {_EACH_SLOT}; }}{every}")]


def _of_processes(kinds: Sequence[tuple[int, int]]) -> str:
    """Return awk that picks one line per process from the lines per slot.

    >>> _of_processes([(4, 3)]), _of_processes([(1, 2), (4, 1)])
    ('NR % 3 == 1', 'NR > 0 && NR <= 2 && (NR - 1) % 2 == 0 || NR > 2 && NR <= 6 && (NR - 3) % 1 == 0')

    Args:
        kinds: the number of processes of each component, and the slots per process.
    """
    if len(kinds) == 1:
        return f"NR % {kinds[0][1]} == 1"
    rules, before = [], 0
    for processes, slots in kinds:
        end = before + processes * slots
        rules.append(f"NR > {before} && NR <= {end} && (NR - {before + 1}) % {slots} == 0")
        before = end
    return " || ".join(rules)


def _of_whole_nodes(asked: ResourceSpecV1) -> str:
    """Return awk that spreads the processes over whole nodes, for `-nnodes` on clusters with CSM.

    On these clusters the first node only launches the job, and every core of the other nodes is a slot.
    """
    count, most = asked.computed_process_count, asked.processes_per_node or 0
    return (
        "!seen[$0]++ { node[k++] = $0 } "
        f"END {{ if (k > 1) {{ most = {most}; if (!most) most = int(({count} + k - 2) / (k - 1)); "
        f"for (i = 0; i < {count} && int(i / most) + 1 < k; i++) print node[int(i / most) + 1] }} }}"
    )
