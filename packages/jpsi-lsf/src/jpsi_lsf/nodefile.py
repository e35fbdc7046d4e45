"""The nodes of a job's processes, as LSF tells a running job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, Site, hookimpl, resources

from .resources import slots_per_process

# "Environment variables set for job execution" of LSF 10.1: a file with the node of each slot; what is
# compatible with older versions has only the list of nodes and numbers, `node1 2 node2 2 `. On clusters with
# CSM the first is the launch node, which runs no process.
_EACH_SLOT = (
    'if [ -r "${LSB_DJOB_HOSTFILE-}" ]; then cat "$LSB_DJOB_HOSTFILE"; '
    "else printf '%s\\n' \"${LSB_MCPU_HOSTS-}\" | awk '"
    "{ for (i = 1; i < NF; i += 2) for (n = $(i + 1); n > 0; n--) print $i }'; fi"
)


@hookimpl
def nodes(spec: JobSpec, site: Site) -> list[ShellLine]:
    """Shell that prints the node of each process, one on a line, grouped by node."""
    slots = slots_per_process(resources(spec), site.config)
    # the slots of a process are on one node, and those of a node come one after the other
    every = "" if slots == 1 else f" | awk 'NR % {slots} == 1'"
    return [ShellLine(f"{{ {_EACH_SLOT}; }}{every}")]
