"""Submits a script with bsub: builds the command, and parses the native id from its output.

The engine runs the command. `nodes` renders the shell lines by which a running job lists the node of each of
its processes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    CommandResult,
    JobSpec,
    ResourceSpecV1,
    Script,
    ShellLine,
    Site,
    components,
    hookimpl,
    resources,
)
from jpsi.plugin.kit import require_one_id

from .custom_options import CUSTOM
from .resources import slots_per_process

# "Environment variable reference" of LSF 10.1. BSUB_* hide the id, wait for the job, or submit nothing; LSB_*
# come from a surrounding job, or are settings of the user for other jobs. LSB_DEFAULT* stay, as they choose
# defaults for what a job leaves open, and LSF_*, as clients need them to reach LSF.
_INHERITED_VARIABLES = (
    "BSUB_*",
    *(f"LSB_{letter}*" for letter in "ABCEFGHIJKLMNOPQRSTUVWXYZ"),
    *("LSB_DA*", "LSB_DI*", "LSB_DJ*", "LSB_DO*"),
    *("LS_EXEC_T", "LS_EXITSTATUS", "LS_JOBPID", "LS_SUBCWD"),
    *RANK_VARIABLES,
)
# bsub repeats its request whenever mbatchd takes longer than 10 s to answer, and each request makes a job.
# Even with a single request, LSF may have the job although bsub reports a failure.
_ONCE = {"LSB_NTRIES": "1"}

_ID = re.compile(r"\bJob <([1-9][0-9]*)> is submitted to ")

# "Environment variables set for job execution" of LSF 10.1: a file with the node of each slot; systems
# compatible with older versions have only the list of nodes and numbers, `node1 2 node2 2 `.
_SLOT_NODES = (
    'if [ -r "${LSB_DJOB_HOSTFILE-}" ]; then cat "$LSB_DJOB_HOSTFILE"; '
    "else printf '%s\\n' \"${LSB_MCPU_HOSTS-}\" | awk '"
    "{ for (i = 1; i < NF; i += 2) for (n = $(i + 1); n > 0; n--) print $i }'; fi"
)


@hookimpl
def submit(script: Script) -> Command:
    """Return the bsub command for a script; bsub reads directives from standard input only."""
    return Command(["bsub"], stdin=script.text, unset=_INHERITED_VARIABLES, environment=_ONCE)


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from bsub's output, which may contain other text."""
    return require_one_id(_ID.findall(result.stdout), result.stdout)


@hookimpl
def nodes(spec: JobSpec, site: Site) -> list[ShellLine]:
    """Return shell that prints the node of each process, one per line, grouped by node."""
    if "nnodes" in CUSTOM.of(spec):
        return [ShellLine(f"{{ {_SLOT_NODES}; }} | awk '{_awk_whole_nodes(resources(spec))}'")]
    component_slots = [
        (component.computed_process_count, slots_per_process(component, site.config))
        for component in components(spec.resources)
    ]
    # the slots of a process are on one node; the slots of a node, and those of a component, are consecutive
    pick_lines = (
        f" | awk '{_awk_process_lines(component_slots)}'"
        if any(slots > 1 for _, slots in component_slots)
        else ""
    )
    return [ShellLine(f"{{ {_SLOT_NODES}; }}{pick_lines}")]


def _awk_process_lines(component_slots: Sequence[tuple[int, int]]) -> str:
    """Return awk that picks one line per process from the lines per slot.

    >>> _awk_process_lines([(4, 3)]), _awk_process_lines([(1, 2), (4, 1)])
    ('NR % 3 == 1', 'NR > 0 && NR <= 2 && (NR - 1) % 2 == 0 || NR > 2 && NR <= 6 && (NR - 3) % 1 == 0')

    Args:
        component_slots: the number of processes of each component, and the slots per process.
    """
    if len(component_slots) == 1:
        return f"NR % {component_slots[0][1]} == 1"
    rules, start = [], 0
    for processes, slots in component_slots:
        end = start + processes * slots
        rules.append(f"NR > {start} && NR <= {end} && (NR - {start + 1}) % {slots} == 0")
        start = end
    return " || ".join(rules)


def _awk_whole_nodes(requested: ResourceSpecV1) -> str:
    """Return awk that spreads the processes over whole nodes, for `-nnodes` on clusters with CSM.

    On these clusters the first node only launches the job, and every core of the other nodes is a slot.
    """
    count, per_node = requested.computed_process_count, requested.processes_per_node or 0
    return (
        "!seen[$0]++ { node[k++] = $0 } "
        f"END {{ if (k > 1) {{ most = {per_node}; if (!most) most = int(({count} + k - 2) / (k - 1)); "
        f"for (i = 0; i < {count} && int(i / most) + 1 < k; i++) print node[int(i / most) + 1] }} }}"
    )
