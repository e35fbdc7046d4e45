"""The shell that tells on which node each process of a job runs, from what Grid Engine tells the job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line, resources

# sge_pe(5), $pe_hostfile: lines with the name of a node and how many slots of it are the job's, one for each
# queue that they come from
_EACH_PROCESS = (
    "{ if (!($1 in slots)) node[++count] = $1; slots[$1] += $2 } "
    "END { for (i = 1; i <= count; i++) for (left = slots[node[i]]; left >= cores && told < processes; "
    "left -= cores) { print node[i]; told++ } }"
)


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """The lines, which print a node for each process, whose cores are a slot each."""
    asked = resources(spec)
    cores, processes = asked.cpu_cores_per_process or 1, asked.computed_process_count
    in_parallel = line("awk", f"-vcores={cores}", f"-vprocesses={processes}", _EACH_PROCESS)
    return [ShellLine(f'if [ -n "${{PE_HOSTFILE-}}" ]; then {in_parallel} "$PE_HOSTFILE"; else uname -n; fi')]
