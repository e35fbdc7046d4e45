"""`sbatch` of the fake of Slurm."""

from __future__ import annotations

import functools
import posixpath
import re
import shlex
from collections.abc import Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from . import het_jobs
from .arguments import UnknownOptionError, parse
from .arrays import array_refusal, array_variables, assign_number, limit_running, native_ids
from .dependencies import dependency_check, dependency_refusal
from .nodes import count_error, count_tasks, node_list, node_names, tasks_per_node

#: The cluster; below, its partitions, accounts and nodes.
CLUSTER = "ci"
_PARTITIONS = frozenset({"main", "debug"})
_ACCOUNTS = frozenset({"proj1", "proj2"})
_CPUS_PER_NODE = 8
_MAX_LENGTH = 1024

# sbatch(1), OPTIONS: those without a value; below, those with one
_FLAGS = (
    "contiguous exclusive help hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet reboot "
    "requeue spread-job test-only usage use-min-nodes verbose version wait"
)
_VALUED = (
    "account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint "
    "container core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency "
    "distribution error exclude export export-file extra-node-info get-user-env gpu-bind gpu-freq gpus "
    "gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep "
    "licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nice "
    "no-kill nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "open-mode output partition power prefer priority profile propagate qos reservation signal "
    "sockets-per-node switches thread-spec threads-per-core time time-min tmp tres-per-task "
    "wait-all-nodes wckey wrap"
)
_KNOWN = {**dict.fromkeys(_FLAGS.split(), False), **dict.fromkeys(_VALUED.split(), True)}
_SHORT = {
    "A": "account",
    "D": "chdir",
    "J": "job-name",
    "M": "clusters",
    "N": "nodes",
    "c": "cpus-per-task",
    "o": "output",
    "e": "error",
    "n": "ntasks",
    "p": "partition",
    "t": "time",
    "H": "hold",
    "Q": "quiet",
}
# INPUT ENVIRONMENT VARIABLES: some of those that override directives
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
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?\Z")


def sbatch(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a job whose script is a file or standard input."""
    try:
        arguments, words = parse(invocation.arguments, _KNOWN, _SHORT, is_script=True)
        if "wrap" in arguments:
            invocation = attrs.evolve(invocation, stdin=f"#!/bin/sh\n{arguments['wrap']}\n")
        elif words:
            invocation = invocation.reading(words[0])
        first, *others = (parse(it, _KNOWN, _SHORT).options for it in _directives(invocation.stdin))
    except UnknownOptionError as e:
        hint = 'Try "sbatch --help" for more information'
        return CommandResult(returncode=255, stderr=f"sbatch: unrecognized option '{e}'\n{hint}\n")
    except OSError:
        return CommandResult(returncode=1, stderr=f"sbatch: error: Unable to open file {words[0]}\n")
    environment = {
        option: invocation.environment[variable]
        for variable, option in _INPUT.items()
        if variable in invocation.environment
    }
    name = "wrap" if "wrap" in arguments else posixpath.basename(words[0]) if words else "sbatch"
    options = {"job-name": name, **first, **environment, **arguments}
    parts = het_jobs.inherit_options(options, others)
    invalid = next(filter(None, map(count_error, parts)), None)
    if refusal := _unreadable(invocation.stdin) or invalid or het_jobs.conflicting_options(parts):
        return CommandResult(returncode=1, stderr=f"sbatch: error: {refusal}\n")
    # Slurm uses up an id for a refused submission too.
    number = str(scheduler.next_number())
    if refusal := next(filter(None, map(_find_refusal, parts)), het_jobs.refusal(parts)):
        failed = f"sbatch: error: Batch job submission failed: {refusal}\n"
        return CommandResult(returncode=1, stderr=failed)
    environment = _environment(options, invocation)
    jobs = []
    for native_id, attributes in native_ids(number, options):
        job = _make_job(native_id, options, invocation)
        job.blocked = dependency_check(scheduler, native_id, options)
        job.attributes.update(attributes)
        job.attributes["submit_line"] = " ".join(["sbatch", *invocation.arguments])
        if others:
            het_jobs.make_heterogeneous(scheduler, job, parts)
            environment |= het_jobs.variables(job, parts)
        job.starting = functools.partial(_start, scheduler, environment)
        job.arguments = words[1:]
        jobs.append(job)
    limit_running(jobs, options)
    scheduler.submit_all(jobs)
    return CommandResult(returncode=0, stdout=_format_id(number, options))


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


def _unreadable(script: str) -> str | None:
    if not script:
        return "Batch script is empty!"
    if not script.startswith("#!"):
        return "This does not look like a batch script.  The first"
    return "Batch script contains DOS line breaks (\\r\\n)" if "\r\n" in script else None


def _find_refusal(options: Mapping[str, str]) -> str | None:
    long = [name for name in ("job-name", "comment") if len(options.get(name, "").encode()) > _MAX_LENGTH]
    crowded = int(options.get("ntasks-per-node", "1")) > _CPUS_PER_NODE
    refusals = {
        "Invalid partition name specified": options.get("partition", "main") not in _PARTITIONS,
        "Invalid account or account/partition combination specified": options.get("account", "proj1")
        not in _ACCOUNTS,
        "Requested reservation is invalid": "reservation" in options,
        "Invalid generic resource (gres) specification": "gpus-per-task" in options,
        "Requested node configuration is not available": crowded,
        "Pathname of a file, directory or other parameter too long": bool(long),
    }
    found = next((text for text, refused in refusals.items() if refused), None)
    return found or array_refusal(options) or dependency_refusal(options.get("dependency", ""))


def _make_job(number: str, options: Mapping[str, str], invocation: Invocation) -> FakeJob:
    nodes = _nodes(options)
    return FakeJob(
        number,
        script=invocation.stdin,
        name=options["job-name"],
        tag=options.get("comment", ""),
        queue=options.get("partition", "main"),
        project=options.get("account", "proj1"),
        directory=options.get("chdir", invocation.directory),
        stdout=options.get("output", "slurm-%j.out").replace("%j", number),
        stderr=options.get("error", options.get("output", "slurm-%j.out")).replace("%j", number),
        slots=max(count_tasks(options, nodes), nodes),
        time_limit=_seconds(options.get("time", "UNLIMITED")),
        attributes={"options": dict(options), "nodes": nodes},
        state=FakeState.HELD if "hold" in options else FakeState.PENDING,
    )


def _environment(options: Mapping[str, str], invocation: Invocation) -> dict[str, str]:
    """Return the variables that all jobs of a submission share."""
    nodes = _nodes(options)
    names = node_list(node_names(nodes))
    cpus = [tasks * int(options.get("cpus-per-task", "1")) for tasks in _spread(options, nodes)]
    return {
        **invocation.environment,
        **_FIRST_TASK,
        "SLURMD_NODENAME": node_names(1)[0],
        "SLURM_CLUSTER_NAME": CLUSTER,
        "SLURM_CPUS_ON_NODE": str(cpus[0]),
        "SLURM_JOB_ACCOUNT": options.get("account", "proj1"),
        "SLURM_JOB_CPUS_PER_NODE": tasks_per_node(cpus),
        "SLURM_JOB_NAME": options["job-name"],
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_JOB_PARTITION": options.get("partition", "main"),
        "SLURM_NNODES": str(nodes),
        "SLURM_NODELIST": names,
        "SLURM_SUBMIT_DIR": invocation.directory,
        **({"SLURM_CPUS_PER_TASK": options["cpus-per-task"]} if "cpus-per-task" in options else {}),
        **_tasks(options, nodes),
    }


def _nodes(options: Mapping[str, str]) -> int:
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
    job.environment = {**environment, **array_variables(job)}
    if job.restarts:
        job.environment["SLURM_RESTART_COUNT"] = str(job.restarts)


def _seconds(text: str) -> float | None:
    """Return the seconds of a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours etc."""
    match = _TIME.match(text)
    if match is None or text == "0":
        return None
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    if match["days"] is not None:
        return int(match["days"]) * 86400.0 + first * 3600 + second * 60 + third
    return first * 3600.0 + second * 60 + third if match["third"] is not None else first * 60.0 + second


def _format_id(number: str, options: Mapping[str, str]) -> str:
    if "quiet" in options:
        return ""
    cluster = options.get("clusters")
    if "parsable" in options:
        return f"{number};{cluster}\n" if cluster else f"{number}\n"
    return f"Submitted batch job {number}{f' on cluster {cluster}' if cluster else ''}\n"
