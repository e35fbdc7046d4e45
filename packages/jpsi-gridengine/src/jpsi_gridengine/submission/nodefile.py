"""Renders the shell lines that print the node of each process, from Grid Engine's host file."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line, resources

# sge_pe(5), $pe_hostfile: lines with a node and the number of the job's slots on it, one line per queue that
# the slots come from
_AWK_NODES = (
    "{ if (!($1 in slots)) node[++count] = $1; slots[$1] += $2 } "
    "END { for (i = 1; i <= count; i++) for (left = slots[node[i]]; left >= cores && report < processes; "
    "left -= cores) { print node[i]; report++ } }"
)


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell lines that print the node of each process; each core of a process is a slot."""
    requested = resources(spec)
    cores, processes = requested.cpu_cores_per_process or 1, requested.computed_process_count
    awk = line("awk", f"-vcores={cores}", f"-vprocesses={processes}", _AWK_NODES)
    return [ShellLine(f'if [ -n "${{PE_HOSTFILE-}}" ]; then {awk} "$PE_HOSTFILE"; else uname -n; fi')]
