"""Renders the shell lines that print the node of each process of a running job."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line

from .resources import Shape


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Return shell that prints the node of each process, one per line, in the order of the ranks.

    For a job with its own instance, Flux places processes here as it will for the launcher; the only process
    of any other job is on the node of the shell.
    """
    shape = Shape.for_spec(spec)
    if not shape.nested:
        return [line("hostname")]
    options = [f"--ntasks={shape.processes}", "--label-io", "--input=/dev/null"]
    if shape.nodes is not None:
        options.append(f"--nodes={shape.nodes}")
    if shape.cores is not None:
        options.append(f"--cores-per-task={shape.cores}")
    if shape.gpus is not None:
        options.append(f"--gpus-per-task={shape.gpus}")
    requested = line("flux", "run", *options, "hostname")
    return [ShellLine(f"{requested} | sort -n | sed 's/^ *[0-9]*: //'")]
