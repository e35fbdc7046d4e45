"""How a running job finds out on which nodes its processes are."""

from __future__ import annotations

from jpsi.plugin import JobSpec, ShellLine, hookimpl, line

from .resources import Shape


@hookimpl
def nodes(spec: JobSpec) -> list[ShellLine]:
    """Shell that prints the node of each process, in the order of ranks, one on a line.

    A job with an instance of its own has Flux place processes as the launcher will; the only process of any
    other job is where the shell is.
    """
    shape = Shape.of(spec)
    if not shape.nested:
        return [line("hostname")]
    options = [f"--ntasks={shape.processes}", "--label-io", "--input=/dev/null"]
    if shape.nodes is not None:
        options.append(f"--nodes={shape.nodes}")
    if shape.cores is not None:
        options.append(f"--cores-per-task={shape.cores}")
    if shape.gpus is not None:
        options.append(f"--gpus-per-task={shape.gpus}")
    asked = line("flux", "run", *options, "hostname")
    return [ShellLine(f"{asked} | sort -n | sed 's/^ *[0-9]*: //'")]
