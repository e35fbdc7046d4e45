"""`flux run` of the fake of Flux: every task is a process on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation, Task, TaskLaunch

from ..native_ids import canonical_id
from .arguments import Arguments, UnknownOptionError, parse, unrecognized
from .native_ids import format_id
from .submit import next_id

# flux-run(1), OPTIONS: those that the fake implements or that have no effect on processes of one machine;
# below, those that it refuses, as it lacks them
_FLAGS = "exclusive label-io quiet unbuffered verbose"
_VALUED = (
    "bank cores-per-task flags gpus-per-task input job-name nodes ntasks queue requires setattr setopt "
    "time-limit urgency"
)
_UNSUPPORTED_FLAGS = "dry-run"
_UNSUPPORTED_VALUED = (
    "add-file begin-time conf cores cwd dependency env env-file env-remove error gpus-per-node log "
    "log-stderr output rlimit signal taskmap tasks-per-core tasks-per-node"
)
_UNSUPPORTED = frozenset(f"{_UNSUPPORTED_FLAGS} {_UNSUPPORTED_VALUED}".split())
_KNOWN = {
    **dict.fromkeys(f"{_FLAGS} {_UNSUPPORTED_FLAGS}".split(), False),
    **dict.fromkeys(f"{_VALUED} {_UNSUPPORTED_VALUED}".split(), True),
}
_SHORT = {
    "B": "bank",
    "N": "nodes",
    "S": "setattr",
    "c": "cores-per-task",
    "g": "gpus-per-task",
    "n": "ntasks",
    "o": "setopt",
    "q": "queue",
    "t": "time-limit",
    "u": "unbuffered",
    "x": "exclusive",
}


def run(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Run tasks in the instance of the calling job, or in the user's instance."""
    try:
        arguments = parse(invocation.arguments[1:], _KNOWN, _SHORT)
    except UnknownOptionError as e:
        return unrecognized("run", e)
    nodes = int(arguments.last("nodes", "1"))
    tasks = int(arguments.last("ntasks", str(nodes)))
    if refusal := _find_refusal(scheduler, invocation, arguments, nodes, tasks):
        return CommandResult(returncode=1, stderr=f"flux-run: ERROR: {refusal}\n")
    node_indices = [node for node in range(nodes) for _ in range(node, tasks, nodes)]
    if "label-io" in arguments.options:
        lines = [f"{task}: node{node_index}\n" for task, node_index in enumerate(node_indices)]
        return CommandResult(returncode=0, stdout="".join(lines))
    stdin = arguments.last("input", "0")
    return TaskLaunch(
        tasks=_tasks(next_id(scheduler), invocation, arguments.words, node_indices),
        stdin=int(stdin) if stdin.isdecimal() else None,
        ends_on_failure="exit-on-error" in arguments.options.get("setopt", ()),
    )


def _find_refusal(
    scheduler: FakeScheduler, invocation: Invocation, arguments: Arguments, nodes: int, tasks: int
) -> str | None:
    unsupported = sorted(_UNSUPPORTED & arguments.options.keys())
    stdin = arguments.last("input", "0")
    job = _enclosing(scheduler, invocation.environment)
    cores = tasks * int(arguments.last("cores-per-task", "1"))
    refusals = {
        f"this fake Flux has no --{', --'.join(unsupported)}": bool(unsupported),
        "job command and arguments are missing": not arguments.words,
        "this fake Flux has no --label-io but for hostname": "label-io" in arguments.options
        and arguments.words != ("hostname",),
        "this fake Flux has no --input but for one task": not stdin.isdecimal() and stdin != "/dev/null",
        "node count must not be greater than task count": nodes > tasks,
        f"unsatisfiable request: need {tasks} task(s) on {nodes} node(s)": job is not None
        and (cores > job.slots or nodes > job.attributes["nodes"]),
    }
    return next((text for text, is_refused in refusals.items() if is_refused), None)


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
