"""`srun` of the fake of Slurm: every task is a process on this machine, whatever its node's name.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi.plugin.kit import expand_hostlist
from jpsi_testing.fake import (
    CommandError,
    FakeJob,
    FakeScheduler,
    Invocation,
    OptionTable,
    Task,
    TaskLaunch,
    refuse_if,
)

from .nodes import count_error, count_tasks, node_list, node_names, tasks_per_node
from .states import expand_pattern, job_number

# srun(1), OPTIONS: those that the fake refuses, as it lacks them
_UNSUPPORTED_FLAGS = "multi-prog preserve-env pty"
_UNSUPPORTED_VALUED = "bcast chdir|D epilog nodelist|w prolog task-epilog task-prolog"
# All options: also those that the fake implements, or that have no effect on processes of one machine
_SRUN = OptionTable(
    flags=(
        "contiguous exact exclusive kill-on-bad-exit|K label|l no-kill overcommit|O overlap oversubscribe|s "
        f"quiet|Q spread-job unbuffered|u use-min-nodes verbose|v {_UNSUPPORTED_FLAGS}"
    ),
    valued=(
        "account|A comment constraint|C cores-per-socket cpu-bind cpus-per-gpu cpus-per-task|c "
        "distribution|m error|e export gpu-bind gpus gpus-per-node gpus-per-socket gpus-per-task gres "
        "het-group hint input|i job-name|J jobid mem mem-bind mem-per-cpu mem-per-gpu mpi nodes|N ntasks|n "
        "ntasks-per-core ntasks-per-node ntasks-per-socket open-mode output|o partition|p qos reservation "
        "time|t wait|W "
        f"{_UNSUPPORTED_VALUED}"
    ),
    unknown=(255, "srun: unrecognized option '{}'\nTry \"srun --help\" for more information\n"),
    abbreviates=True,
)
_UNSUPPORTED = {it.partition("|")[0] for it in f"{_UNSUPPORTED_FLAGS} {_UNSUPPORTED_VALUED}".split()}
_REFUSED = "srun: error: {}\n"
# errno.h: ENOENT and EACCES, which are the exit codes of tasks whose program cannot be executed
_NOT_FOUND, _NOT_EXECUTABLE = 2, 13
# The words of --input; of `all`, the fake knows the first task only
_STDIN: Mapping[str, str | None] = {"none": None, "all": "0"}


@attrs.frozen(slots=True, kw_only=True)
class _Part:
    """The tasks of a step, or of one component of a heterogeneous step."""

    options: Mapping[str, str]
    command: tuple[str, ...]
    nodes: Sequence[str]
    #: The index of each task's node.
    node_indices: Sequence[int]
    #: srun's warning about these options.
    warning: str = ""


def srun(scheduler: FakeScheduler, invocation: Invocation) -> TaskLaunch:
    """Run tasks as a step of the calling job, or outside of jobs as a job that no listing shows."""
    environment = invocation.environment
    number = environment.get("SLURM_JOB_ID", "")
    job = next((job for job in scheduler.jobs if number and job_number(job) == number), None)
    parts = [_parse_part(words, environment) for words in _split_components(invocation.arguments)]
    first = parts[0].options
    stdin = _STDIN.get(first.get("input", "0"), first.get("input", "0"))
    refusals = {
        f"Unable to create step for job {number}: More processors requested than permitted": job is not None
        and not _has_enough_cpus(job, parts),
        "this fake Slurm has no --input from a file": stdin is not None and not stdin.isdecimal(),
    }
    refuse_if(refusals, 1, _REFUSED)
    step = str(0 if job is None else job.attributes.get("steps", 0))
    if job is None:
        number = number or str(scheduler.next_number())
    else:
        job.attributes["steps"] = int(step) + 1
    shared = {f"SLURM_{name}": number for name in ("JOBID", "JOB_ID")}
    shared |= {f"SLURM_{name}": step for name in ("STEPID", "STEP_ID")}
    return TaskLaunch(
        stderr="".join(part.warning for part in parts),
        tasks=_tasks(parts, shared, environment),
        stdin=None if stdin is None else int(stdin),
        ends_on_failure=first.get("kill-on-bad-exit", "0") != "0",
        is_labelled="label" in first,
        not_found=_NOT_FOUND,
        not_executable=_NOT_EXECUTABLE,
    )


def _split_components(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the arguments of each component."""
    part: list[str] = []
    for word in words:
        if word == ":":
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _parse_part(words: Sequence[str], environment: Mapping[str, str]) -> _Part:
    arguments = _SRUN.parse(words)
    options, command = arguments.options, arguments.words
    wrong_count, unsupported = count_error(options), _UNSUPPORTED & options.keys()
    refusals = {
        f"{wrong_count}": wrong_count,
        f"this fake Slurm has no --{min(unsupported, default='')}": unsupported,
        "this fake Slurm has no --export but ALL": options.get("export", "ALL") != "ALL",
        "No command given to execute.": not command,
    }
    refuse_if(refusals, 1, _REFUSED)
    # the value of this option is optional and defaults to yes
    if options.get("kill-on-bad-exit") == "":
        options = {**options, "kill-on-bad-exit": "1"}
    group = f"_HET_GROUP_{options['het-group']}" if "het-group" in options else ""
    job_nodes = expand_hostlist(environment.get(f"SLURM_JOB_NODELIST{group}", ""))
    if options.get("distribution") == "arbitrary":
        nodes, node_indices = _read_hostfile(options, environment)
        return _Part(options=options, command=command, nodes=nodes, node_indices=node_indices)
    requested = int(options.get("nodes", "0").partition("-")[0])
    count = requested or len(job_nodes) or 1
    is_available = not job_nodes or count <= len(job_nodes)
    refuse_if(
        {"Unable to create step: Requested node configuration is not available": not is_available},
        1,
        _REFUSED,
    )
    tasks = _count_step_tasks(options, environment, group, count)
    warning = ""
    if tasks < count:
        if requested:
            message = f"can't run {tasks} processes on {count} nodes, setting nnodes to {tasks}"
            warning = f"srun: Warning: {message}\n"
        count = tasks
    names = (job_nodes or node_names(count))[:count]
    per_node = int(options.get("ntasks-per-node", "0"))
    node_indices = _distribute_tasks(
        tasks, count, per_node, is_cyclic=options.get("distribution", "").startswith("cyclic")
    )
    return _Part(options=options, command=command, nodes=names, node_indices=node_indices, warning=warning)


def _count_step_tasks(
    options: Mapping[str, str], environment: Mapping[str, str], group: str, nodes: int
) -> int:
    """Return the number of tasks: the requested one, else that of the job, else one per node."""
    if "ntasks" in options or "ntasks-per-node" in options:
        return count_tasks(options, nodes)
    job_tasks = environment.get(f"SLURM_NTASKS{group}", "")
    if job_tasks and "nodes" not in options:
        return int(job_tasks)
    return nodes * int(environment.get("SLURM_NTASKS_PER_NODE", "1"))


def _distribute_tasks(tasks: int, nodes: int, per_node: int, *, is_cyclic: bool) -> list[int]:
    """Return the index of each task's node: nodes are filled in turn, or get tasks round-robin if cyclic."""
    if is_cyclic:
        return [task % nodes for task in range(tasks)]
    if per_node:
        return [min(task // per_node, nodes - 1) for task in range(tasks)]
    few, more = divmod(tasks, nodes)
    return [node for node in range(nodes) for _ in range(few + (node < more))]


def _read_hostfile(options: Mapping[str, str], environment: Mapping[str, str]) -> tuple[list[str], list[int]]:
    """Return the nodes, and the index of each task's node, from the file SLURM_HOSTFILE."""
    try:
        names = Path(environment.get("SLURM_HOSTFILE", "")).read_text(encoding="utf-8").split()
    except OSError as e:
        raise CommandError(1, _REFUSED.format("Unable to read SLURM_HOSTFILE")) from e
    names = names[: int(options.get("ntasks", len(names)))]
    nodes = list(dict.fromkeys(names))
    return nodes, [nodes.index(name) for name in names]


def _has_enough_cpus(job: FakeJob, parts: Sequence[_Part]) -> bool:
    """Return True if the job has enough processors for the step."""
    options: Mapping[str, str] = job.attributes.get("options", {})
    if any("overcommit" in part.options for part in parts):
        return True
    cpus_per_task = int(options.get("cpus-per-task", "1"))
    used = sum(len(part.node_indices) * int(part.options.get("cpus-per-task", "1")) for part in parts)
    return "exclusive" in options or used <= job.slots * cpus_per_task


def _stream_path(pattern: str | None, variables: Mapping[str, str]) -> str | None:
    """Return the file for a stream of a task; None if it is that of srun. srun(1), IO REDIRECTION."""
    if pattern is None or pattern == "all":
        return None
    values = {
        "A": variables.get("SLURM_ARRAY_JOB_ID", variables["SLURM_JOB_ID"]),
        "N": variables["SLURMD_NODENAME"].partition(".")[0],
        "a": variables.get("SLURM_ARRAY_TASK_ID", "4294967294"),
        "j": variables["SLURM_JOB_ID"],
        "n": variables["SLURM_NODEID"],
        "s": variables["SLURM_STEP_ID"],
        "t": variables["SLURM_PROCID"],
        "u": variables.get("USER", ""),
        "x": variables.get("SLURM_JOB_NAME", ""),
    }
    return "/dev/null" if pattern == "none" else expand_pattern(pattern, values)


def _tasks(
    parts: Sequence[_Part], shared: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[Task]:
    """Yield the tasks with the variables of Slurm 22.05; srun(1), OUTPUT ENVIRONMENT VARIABLES."""
    nodes = [node for part in parts for node in part.nodes]
    total, count = sum(len(part.node_indices) for part in parts), len(nodes)
    task_counts = [
        part.node_indices.count(node_index) for part in parts for node_index in range(len(part.nodes))
    ]
    tasks_on_nodes = tasks_per_node(task_counts)
    step = {
        **shared,
        "SLURM_JOB_NODELIST": environment.get("SLURM_JOB_NODELIST", node_list(nodes)),
        "SLURM_JOB_NUM_NODES": environment.get("SLURM_JOB_NUM_NODES", str(count)),
        "SLURM_NODELIST": environment.get("SLURM_NODELIST", node_list(nodes)),
        "SLURM_NNODES": str(count),
        "SLURM_NPROCS": str(total),
        "SLURM_NTASKS": str(total),
        "SLURM_STEP_NODELIST": node_list(nodes),
        "SLURM_STEP_NUM_NODES": str(count),
        "SLURM_STEP_NUM_TASKS": str(total),
        "SLURM_STEP_TASKS_PER_NODE": tasks_on_nodes,
        "SLURM_TASKS_PER_NODE": tasks_on_nodes,
    }
    rank = first_node = 0
    for part in parts:
        ranks: list[list[int]] = [[] for _ in part.nodes]
        for task_rank, node_index in enumerate(part.node_indices, rank):
            ranks[node_index].append(task_rank)
        cpus = part.options.get("cpus-per-task", environment.get("SLURM_CPUS_PER_TASK"))
        cpus_variable = {} if cpus is None else {"SLURM_CPUS_PER_TASK": cpus}
        for node_index in part.node_indices:
            own = {
                "SLURMD_NODENAME": part.nodes[node_index],
                "SLURM_GTIDS": ",".join(map(str, ranks[node_index])),
                "SLURM_LOCALID": str(ranks[node_index].index(rank)),
                "SLURM_NODEID": str(first_node + node_index),
                "SLURM_PROCID": str(rank),
            }
            variables = {**step, **cpus_variable, **own}
            stdout, stderr = (part.options.get(it) for it in ("output", "error"))
            yield Task(
                argv=part.command,
                environment=variables,
                stdout=_stream_path(stdout, {**environment, **variables}),
                stderr=_stream_path(stdout if stderr is None else stderr, {**environment, **variables}),
            )
            rank += 1
        first_node += len(part.nodes)
