"""The shell that tells on which node each process of a job runs, from what Grid Engine tells the job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line, resources

# sge_pe(5), $pe_hostfile: a line for each node, with its name and how many slots of it are the job's
_EACH_PROCESS = "{ for (left = $2; left >= cores; left -= cores) print $1 }"


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """The lines, which print a node for each process, whose cores are a slot each."""
    cores = resources(spec).cpu_cores_per_process or 1
    in_parallel = line("awk", f"-vcores={cores}", _EACH_PROCESS)
    return [ShellLine(f'if [ -n "${{PE_HOSTFILE-}}" ]; then {in_parallel} "$PE_HOSTFILE"; else uname -n; fi')]
