"""`flux run` of the fake of Flux: every task is a process on this machine.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    Arguments,
    FakeJob,
    FakeScheduler,
    Invocation,
    OptionTable,
    Task,
    TaskLaunch,
    join_lines,
    refuse_if,
)

from ..native_ids import canonical_id
from .native_ids import format_id
from .submit import next_id, unrecognized

# flux-run(1), OPTIONS: those that the fake refuses, as it lacks them
_UNSUPPORTED_VALUED = (
    "add-file begin-time conf cores cwd dependency env env-file env-remove error gpus-per-node log "
    "log-stderr output rlimit signal taskmap tasks-per-core tasks-per-node"
)
_UNSUPPORTED = frozenset({"dry-run", *_UNSUPPORTED_VALUED.split()})
# All options: also those that the fake implements, or that have no effect on processes of one machine
_RUN = OptionTable(
    flags="exclusive|x label-io quiet unbuffered|u verbose dry-run",
    valued=(
        "bank|B cores-per-task|c flags gpus-per-task|g input job-name nodes|N ntasks|n queue|q requires "
        f"setattr|S setopt|o time-limit|t urgency {_UNSUPPORTED_VALUED}"
    ),
    unknown=unrecognized("run"),
)


def run(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult | str:
    """Run tasks in the instance of the calling job, or in the user's instance."""
    arguments = _RUN.parse(invocation.arguments[1:])
    nodes = int(arguments.last("nodes", "1"))
    tasks = int(arguments.last("ntasks", str(nodes)))
    _check_options(scheduler, invocation, arguments, nodes, tasks)
    node_indices = [node for node in range(nodes) for _ in range(node, tasks, nodes)]
    if "label-io" in arguments.values:
        return join_lines(f"{task}: node{node_index}" for task, node_index in enumerate(node_indices))
    stdin = arguments.last("input", "0")
    return TaskLaunch(
        tasks=_tasks(next_id(scheduler), invocation, arguments.words, node_indices),
        stdin=int(stdin) if stdin.isdecimal() else None,
        ends_on_failure="exit-on-error" in arguments.values.get("setopt", ()),
    )


def _check_options(
    scheduler: FakeScheduler, invocation: Invocation, arguments: Arguments, nodes: int, tasks: int
) -> None:
    """Raise the error of `flux run` about its options."""
    unsupported = sorted(_UNSUPPORTED & arguments.values.keys())
    stdin = arguments.last("input", "0")
    job = _enclosing(scheduler, invocation.environment)
    cores = tasks * int(arguments.last("cores-per-task", "1"))
    refusals = {
        f"this fake Flux has no --{', --'.join(unsupported)}": bool(unsupported),
        "job command and arguments are missing": not arguments.words,
        "this fake Flux has no --label-io but for hostname": "label-io" in arguments.values
        and arguments.words != ("hostname",),
        "this fake Flux has no --input but for one task": not stdin.isdecimal() and stdin != "/dev/null",
        "node count must not be greater than task count": nodes > tasks,
        f"unsatisfiable request: need {tasks} task(s) on {nodes} node(s)": job is not None
        and (cores > job.slots or nodes > job.attributes["nodes"]),
    }
    refuse_if(refusals, 1, "flux-run: ERROR: {}\n")


def _enclosing(scheduler: FakeScheduler, environment: Mapping[str, str]) -> FakeJob | None:
    """Return the job whose instance the environment names; None for the user's instance."""
    try:
        native_id = canonical_id(environment.get("FLUX_ENCLOSING_ID", ""))
    except ValueError:
        return None
    return next((job for job in scheduler.jobs if job.native_id == native_id), None)


def _tasks(
    native_id: str, invocation: Invocation, argv: tuple[str, ...], node_indices: list[int]
) -> Iterator[Task]:
    """Yield the tasks, with the variables of flux-environment(7)."""
    own = format_id(native_id, invocation)
    enclosing = invocation.environment.get("FLUX_ENCLOSING_ID", "")
    shared = {
        "FLUX_JOB_ID": own,
        "FLUX_JOB_ID_PATH": f"/{enclosing}/{own}" if enclosing else f"/{own}",
        "FLUX_JOB_NNODES": str(len(set(node_indices))),
        "FLUX_JOB_SIZE": str(len(node_indices)),
        "FLUX_KVS_NAMESPACE": f"job-{native_id}",
        "PMI_SIZE": str(len(node_indices)),
    }
    for rank, node_index in enumerate(node_indices):
        task = {
            "FLUX_TASK_LOCAL_ID": str(rank - node_indices.index(node_index)),
            "FLUX_TASK_RANK": str(rank),
            "PMI_RANK": str(rank),
        }
        yield Task(argv=argv, environment={**shared, **task})
