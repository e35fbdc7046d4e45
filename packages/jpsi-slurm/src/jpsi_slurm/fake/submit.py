"""`sbatch` of the fake of Slurm.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import functools
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import DependencyKind
from jpsi.plugin.kit import parse_limit, read_indices
from jpsi_testing.fake import (
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    OptionTable,
    limit,
    node_name,
    refuse_if,
    wait_for_jobs,
)

from ..custom_options import parse_time
from .arrays import MAX_ARRAY_SIZE, assign_number
from .nodes import CLUSTER, count_error, count_tasks, node_list, node_names, tasks_per_node
from .states import COMPONENT_NODES, COMPONENT_NUMBERS, NEVER, WAITS, job_number

_PARTITIONS = frozenset({"main", "debug"})
_ACCOUNTS = frozenset({"proj1", "proj2"})
_CPUS_PER_NODE = 8
_MAX_LENGTH = 1024
_MEMORY = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
# The id of a job or an array element
_ID = re.compile(r"[0-9]+(_[0-9]+)?")
#: The message of a submission that slurmctld refuses.
SUBMISSION_FAILED = "sbatch: error: Batch job submission failed: {}\n"
#: The reason code of elements that wait because as many others run as may at a time.
ARRAY_LIMIT = "JobArrayTaskLimit"

# The options of sbatch(1); flags such as --nice may have a value, which follows `=` at once
SBATCH = OptionTable(
    flags=(
        "contiguous exclusive get-user-env help|h hold|H ignore-pbs nice no-kill|k no-requeue overcommit|O "
        "oversubscribe|s parsable propagate quiet|Q reboot requeue spread-job test-only usage|u "
        "use-min-nodes verbose|v version|V wait|W"
    ),
    valued=(
        "account|A acctg-freq array|a batch bb bbf begin|b chdir|D cluster-constraint clusters|M comment "
        "constraint|C container core-spec|S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task|c deadline "
        "delay-boot dependency|d distribution|m error|e exclude|x export export-file extra-node-info|B "
        "gpu-bind gpu-freq gpus|G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags "
        "hint input|i job-name|J kill-on-invalid-dep licenses|L mail-type mail-user mcs-label mem mem-bind "
        "mem-per-cpu mem-per-gpu mincpus network nodefile|F nodelist|w nodes|N ntasks|n "
        "ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output|o partition|p "
        "power prefer priority profile qos|q reservation signal sockets-per-node switches "
        "thread-spec threads-per-core time|t time-min tmp tres-per-task wait-all-nodes wckey wrap"
    ),
    unknown=(255, "sbatch: unrecognized option '{}'\nTry \"sbatch --help\" for more information\n"),
    abbreviates=True,
)
# Some of the input environment variables, which override directives
_INPUT = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_OUTPUT": "output",
    "SBATCH_PARTITION": "partition",
    "SBATCH_RESERVATION": "reservation",
    "SBATCH_TIMELIMIT": "time",
}
# The script is the first task of a step.
_FIRST_TASK = dict.fromkeys(("SLURM_GTIDS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_PROCID"), "0")
# slurm_opt.c and proc_args.c of Slurm 22.05; jpsi understands fractions of memory, too
_MEMORY_SIZE = re.compile(r"[0-9]+(\.[0-9]+)?([kmgt]b?)?", re.ASCII | re.IGNORECASE)
_SIGNALS = frozenset(
    {"HUP", "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1", "USR2", "URG", "CONT", "STOP", "TSTP"}
    | {"TTIN", "TTOU", "XCPU"}
)
#: sbatch(1): --signal
SIGNAL = re.compile(r"(?P<batch>R?B?:)?(?P<name>[A-Za-z0-9]+)(?:@(?P<seconds>[0-9]+))?", re.ASCII)
_LARGEST_SIGNAL = 0xFFFF


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """A request for a job, as sbatch reads it from its arguments, its environment and the script."""

    #: The options of each component; a job that is not heterogeneous has one.
    parts: Sequence[Mapping[str, str]]
    #: The file with the script as the call names it; "" if it is none.
    script: str
    #: The arguments of the script.
    arguments: tuple[str, ...]
    #: The call, with the script as its input.
    invocation: Invocation

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the job, or of its first component."""
        return self.parts[0]

    @property
    def indices(self) -> Sequence[int | None]:
        """The indices of an array; None alone for a single job."""
        return _indices(self.options) or [None]

    @property
    def at_a_time(self) -> int:
        """The number of elements that may run at a time; 0 is no limit."""
        return int(self.options.get("array", "").partition("%")[2] or 0)


def read_request(invocation: Invocation) -> Request:
    """Return the request of a call of sbatch.

    Raises:
        CommandError: sbatch itself refuses the script or its options.
    """
    parsed = SBATCH.parse(invocation.arguments)
    arguments, words = parsed.options, parsed.words
    if "wrap" in arguments:
        invocation = attrs.evolve(invocation, stdin=f"#!/bin/sh\n{arguments['wrap']}\n")
    else:
        invocation = invocation.reading_script(words, "sbatch: error: Unable to open file {file}\n")
    first, *others = (SBATCH.parse(it, permutes=True).options for it in _directives(invocation.stdin))
    environment = {
        option: invocation.environment[variable]
        for variable, option in _INPUT.items()
        if variable in invocation.environment
    }
    name = "wrap" if "wrap" in arguments else posixpath.basename(words[0]) if words else "sbatch"
    options = {"job-name": name, **first, **environment, **arguments}
    parts = inherit_options(options, others)
    _check_script(invocation.stdin, parts)
    script = words[0] if words and "wrap" not in arguments else ""
    return Request(parts=parts, script=script, arguments=words[1:], invocation=invocation)


def sbatch(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a job whose script is a file or standard input."""
    request = read_request(invocation)
    options, invocation = request.options, request.invocation
    # Slurm uses up an id for a refused submission too.
    number = str(scheduler.next_number())
    for part in request.parts:
        check_values(part)
        _check_options(part)
    is_heterogeneous = len(request.parts) > 1
    refuse_if(
        {"Invalid job array specification": is_heterogeneous and "array" in options}, 1, SUBMISSION_FAILED
    )
    jobs = [_make_job(number, index, options, invocation) for index in request.indices]
    environment = _environment(options, invocation)
    for job in jobs:
        give_up = functools.partial(scheduler.cancel, job.native_id)
        job.blocked = wait_for_jobs(
            read_dependencies(options),
            scheduler.listed,
            WAITS,
            NEVER,
            give_up if options.get("kill-on-invalid-dep") == "yes" else None,
        )
        if is_heterogeneous:
            environment |= make_heterogeneous(scheduler, job, request.parts)
        job.starting = functools.partial(_start, scheduler, environment)
        job.arguments = request.arguments
    limit(jobs, request.at_a_time, ARRAY_LIMIT)
    scheduler.submit_all(jobs)
    return format_id(number, options)


def _directives(script: str) -> list[list[str]]:
    """Return the words of the `#SBATCH` lines before the first command, by component."""
    parts: list[list[str]] = [[]]
    for line in script.splitlines():
        if line.startswith("#SBATCH"):
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            if words == ["hetjob"]:
                parts.append([])
            else:
                parts[-1] += words
        elif line and not line.startswith("#"):
            break
    return parts


def _check_script(script: str, parts: Sequence[Mapping[str, str]]) -> None:
    """Raise the error with which sbatch itself refuses a script or its options."""
    refusals = {
        "Batch script is empty!": not script,
        "This does not look like a batch script.  The first": not script.startswith("#!"),
        "Batch script contains DOS line breaks (\\r\\n)": "\r\n" in script,
        **{error: True for error in map(count_error, parts) if error},
        "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.": any(
            len(_MEMORY & part.keys()) > 1 for part in parts
        ),
    }
    refuse_if(refusals, 1, "sbatch: error: {}\n")


def check_values(options: Mapping[str, str]) -> None:
    """Raise the error with which Slurm refuses a value that it does not understand."""
    checks: dict[str, Callable[[str], object]] = {
        **dict.fromkeys(("time", "time-min"), _is_time),
        **dict.fromkeys(_MEMORY, _MEMORY_SIZE.fullmatch),
        "signal": _is_signal,
    }
    wrong = [name for name, check in checks.items() if name in options and not check(options[name])]
    refuse_if({f"Invalid --{name} specification": True for name in wrong}, 255, "sbatch: error: {}\n")
    refuse_if({"Invalid job array specification": not _are_indices(options)}, 1, SUBMISSION_FAILED)


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _is_signal(text: str) -> bool:
    match = SIGNAL.fullmatch(text)
    if match is None:
        return False
    name = match["name"].upper().removeprefix("SIG")
    return name in _SIGNALS or (name.isdecimal() and 0 < int(name) <= _LARGEST_SIGNAL)


def _are_indices(options: Mapping[str, str]) -> bool:
    ranges, has_limit, at_a_time = options.get("array", "").partition("%")
    try:
        found = read_indices(ranges) if ranges else []
    except ValueError:
        return False
    return all(found) and (not has_limit or at_a_time.isdecimal())


def _check_options(options: Mapping[str, str]) -> None:
    """Raise the error with which slurmctld refuses a job."""
    is_valid_account = options.get("account", "proj1") in _ACCOUNTS
    is_long = any(len(options.get(it, "").encode()) > _MAX_LENGTH for it in ("job-name", "comment"))
    is_crowded = int(options.get("ntasks-per-node", "1")) > _CPUS_PER_NODE
    refusals = {
        "Invalid partition name specified": options.get("partition", "main") not in _PARTITIONS,
        "Invalid account or account/partition combination specified": not is_valid_account,
        "Requested reservation is invalid": "reservation" in options,
        "Invalid generic resource (gres) specification": "gpus-per-task" in options,
        "Requested node configuration is not available": is_crowded,
        "Pathname of a file, directory or other parameter too long": is_long,
        "Invalid job array specification": max(_indices(options), default=0) >= MAX_ARRAY_SIZE,
        "Job dependency problem": not are_dependencies(options.get("dependency", "")),
    }
    refuse_if(refusals, 1, SUBMISSION_FAILED)


def _indices(options: Mapping[str, str]) -> list[int]:
    """Return the indices of an array; none for a single job."""
    text = options.get("array", "").partition("%")[0]
    return [index for part in read_indices(text) for index in part] if text else []


def are_dependencies(text: str) -> bool:
    """Return True if a `--dependency` is well-formed."""
    parts = [part.split(":") for part in text.split(",")] if text else []
    return all(kind in _KINDS and ids and all(map(_ID.fullmatch, ids)) for kind, *ids in parts)


def read_dependencies(options: Mapping[str, str]) -> list[tuple[DependencyKind, str]]:
    """Return the ids of the jobs that a job waits for, each with the kind of the dependency."""
    text = options.get("dependency", "")
    parts = [part.split(":") for part in text.split(",")] if text else []
    return [(_KINDS[kind], native_id) for kind, *ids in parts for native_id in ids]


def _make_job(number: str, index: int | None, options: Mapping[str, str], invocation: Invocation) -> FakeJob:
    nodes = requested_nodes(options)
    native_id = number if index is None else f"{number}_{index}"
    stdout = options.get("output", "slurm-%j.out")
    return FakeJob(
        native_id,
        script=invocation.stdin,
        name=options["job-name"],
        tag=options.get("comment", ""),
        queue=options.get("partition", "main"),
        project=options.get("account", "proj1"),
        directory=options.get("chdir", invocation.directory),
        stdout=stdout.replace("%j", native_id),
        stderr=options.get("error", stdout).replace("%j", native_id),
        slots=max(count_tasks(options, nodes), nodes),
        time_limit=read_seconds(options.get("time", "UNLIMITED")),
        array="" if index is None else number,
        index=index or 0,
        attributes={
            "options": dict(options),
            "nodes": nodes,
            "submit_line": " ".join(["sbatch", *invocation.arguments]),
        },
        state=FakeState.HELD if "hold" in options else FakeState.PENDING,
    )


def _environment(options: Mapping[str, str], invocation: Invocation) -> dict[str, str]:
    """Return the variables that all jobs of a submission share."""
    return {
        **invocation.environment,
        **_FIRST_TASK,
        "SLURMD_NODENAME": node_names(1)[0],
        "SLURM_JOB_ACCOUNT": options.get("account", "proj1"),
        "SLURM_JOB_PARTITION": options.get("partition", "main"),
        **size_variables(options, node_list(node_names(requested_nodes(options)))),
        "SLURM_SUBMIT_DIR": invocation.directory,
    }


def size_variables(options: Mapping[str, str], names: str) -> dict[str, str]:
    """Return the variables that say how large a job is; its nodes are given in Slurm's notation."""
    nodes = requested_nodes(options)
    cpus = [tasks * int(options.get("cpus-per-task", "1")) for tasks in _spread(options, nodes)]
    return {
        "SLURM_CLUSTER_NAME": CLUSTER,
        "SLURM_CPUS_ON_NODE": str(cpus[0]),
        "SLURM_JOB_CPUS_PER_NODE": tasks_per_node(cpus),
        "SLURM_JOB_NAME": options["job-name"],
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_NNODES": str(nodes),
        "SLURM_NODELIST": names,
        **({"SLURM_CPUS_PER_TASK": options["cpus-per-task"]} if "cpus-per-task" in options else {}),
        **_tasks(options, nodes),
    }


def requested_nodes(options: Mapping[str, str]) -> int:
    """Return the number of nodes of a job: the smallest that it requests."""
    return int(options.get("nodes", "1").partition("-")[0])


def _tasks(options: Mapping[str, str], nodes: int) -> dict[str, str]:
    """Return the variables about tasks; with --ntasks-per-node each node counts as full, as in Slurm."""
    if not {"ntasks", "ntasks-per-node"} & options.keys():
        return {"SLURM_TASKS_PER_NODE": tasks_per_node([1] * nodes)}
    tasks = count_tasks(options, nodes)
    total = {"SLURM_NPROCS": str(tasks), "SLURM_NTASKS": str(tasks)}
    if "ntasks-per-node" in options:
        per_node = options["ntasks-per-node"]
        tasks_on_nodes = tasks_per_node([int(per_node)] * nodes)
        return {**total, "SLURM_NTASKS_PER_NODE": per_node, "SLURM_TASKS_PER_NODE": tasks_on_nodes}
    return {**total, "SLURM_TASKS_PER_NODE": tasks_per_node(_spread(options, nodes))}


def _spread(options: Mapping[str, str], nodes: int) -> list[int]:
    """Return the tasks of each node, spread evenly; each node has processors for at least one."""
    few, more = divmod(count_tasks(options, nodes), nodes)
    return [max(1, few + (node < more)) for node in range(nodes)]


def _start(scheduler: FakeScheduler, environment: Mapping[str, str], job: FakeJob) -> None:
    assign_number(scheduler, job)
    number = job_number(job)
    job.environment = {**environment, "SLURM_JOBID": number, "SLURM_JOB_ID": number}
    if job.array:
        job.environment |= {"SLURM_ARRAY_JOB_ID": job.array, "SLURM_ARRAY_TASK_ID": str(job.index)}
    if job.restarts:
        job.environment["SLURM_RESTART_COUNT"] = str(job.restarts)


def read_seconds(text: str) -> float | None:
    """Return the seconds of a time limit; None is no limit."""
    limit = parse_limit(text, parse_time)
    return limit.total_seconds() if limit else None


def format_id(number: str, options: Mapping[str, str]) -> str:
    """Return what sbatch prints about a job of this number."""
    if "quiet" in options:
        return ""
    cluster = options.get("clusters")
    if "parsable" in options:
        return f"{number};{cluster}\n" if cluster else f"{number}\n"
    return f"Submitted batch job {number}{f' on cluster {cluster}' if cluster else ''}\n"


# Slurm 22.05: the options that a component does not inherit from the one before
_NOT_INHERITED = frozenset(
    {"constraint", "cpus-per-task", "exclusive", "gpus-per-task", "licenses", "mem-per-cpu"}
    | {"nodes", "ntasks", "ntasks-per-node", "partition"}
)
_NODES = 2


def inherit_options(first: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the options of each component, with those that it inherits from the one before."""
    components = [first]
    for own in others:
        inherited = {name: value for name, value in components[-1].items() if name not in _NOT_INHERITED}
        components.append({**inherited, **own})
    return components


def make_heterogeneous(
    scheduler: FakeScheduler, job: FakeJob, components: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Make a job heterogeneous: each component gets a number and its own node; return the script's variables.

    sbatch(1), OUTPUT ENVIRONMENT VARIABLES, describes them.
    """
    numbers = [job.native_id, *(str(scheduler.next_number()) for _ in components[1:])]
    nodes = [node_name(group % _NODES) for group in range(len(components))]
    job.attributes |= {COMPONENT_NUMBERS: numbers, COMPONENT_NODES: nodes}
    job.slots = sum(int(part.get("ntasks", "1")) for part in components)
    variables = {"SLURM_HET_SIZE": str(len(components))}
    for group, part in enumerate(components):
        tasks = part.get("ntasks", "1")
        values = {
            "SLURM_JOB_ID": numbers[group],
            "SLURM_JOB_NODELIST": nodes[group],
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NTASKS": tasks,
            "SLURM_TASKS_PER_NODE": part.get("ntasks-per-node", tasks),
        }
        variables.update((f"{name}_HET_GROUP_{group}", value) for name, value in values.items())
    return variables
