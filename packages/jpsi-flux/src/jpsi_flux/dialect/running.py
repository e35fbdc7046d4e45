"""`flux run` over a fake batch system: it knows where tasks would be, and runs none."""

from __future__ import annotations

from jpsi.fakes import FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .arguments import UnknownOptionError, parse, unrecognized

# flux-run(1), OPTIONS, those that jpsi gives
_KNOWN = {"cores-per-task": True, "input": True, "label-io": False, "nodes": True, "ntasks": True}
_SHORT = {"c": "cores-per-task", "N": "nodes", "n": "ntasks"}


def run(_scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Say what each task prints whose command is `hostname`."""
    if invocation.arguments[-1] != "hostname":
        said = "flux-run: ERROR: this fake Flux starts no processes; the launcher multiple does\n"
        return CommandResult(returncode=1, stderr=said)
    try:
        given = parse(invocation.arguments[1:], _KNOWN, _SHORT)
    except UnknownOptionError as e:
        return unrecognized("run", e)
    nodes, tasks = int(given.last("nodes", "1")), int(given.last("ntasks", "1"))
    if nodes > tasks:
        said = "flux-run: ERROR: node count must not be greater than task count\n"
        return CommandResult(returncode=1, stderr=said)
    places = [f"node{node}" for node in range(nodes) for _ in range(node, tasks, nodes)]
    labelled = "label-io" in given.options
    lines = [f"{task}: {place}\n" if labelled else f"{place}\n" for task, place in enumerate(places)]
    return CommandResult(returncode=0, stdout="".join(lines))
