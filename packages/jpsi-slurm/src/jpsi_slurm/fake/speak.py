"""The commands of Slurm for jobs of jpsi, on any executor: `jpsi speak slurm` puts them on PATH.

They read and answer as the fake does. Only `sbatch` differs: it makes specs of jpsi, by the readers that
convert scripts, and refuses what they cannot keep.
"""

from __future__ import annotations

import functools
import itertools
import os
import platform
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

import attrs

from jpsi.plugin import CommandResult, DependencyKind, JobSpec, line, word
from jpsi_testing.fake import (
    SPEC,
    CommandError,
    CommandFunction,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    OptionTable,
    SpokenQueue,
    TaskLaunch,
    inherited_variables,
    interpreter,
    join_lines,
    limit,
    lost_attributes,
    refuse_if,
    script_command,
    wait_for_jobs,
    with_command,
)

from ..directives import read_script
from . import commands as _fake_commands
from . import unreachable
from .arrays import find_jobs
from .listing import template_of_letters
from .nodes import count_tasks
from .states import HOSTS, NEVER, NUMBER, WAITS, expand_pattern
from .submit import (
    ARRAY_LIMIT,
    SBATCH,
    SIGNAL,
    SUBMISSION_FAILED,
    Request,
    are_dependencies,
    check_values,
    format_id,
    read_dependencies,
    read_request,
    read_seconds,
    requested_nodes,
    size_variables,
)

#: The name of the cluster, and of the partition of jobs that request none.
CLUSTER = "jpsi"
# The options of sbatch that this module carries out, or that change nothing about a job
_OWN_OPTIONS = frozenset(
    {"array", "chdir", "comment", "dependency", "error", "export", "get-user-env", "hold", "input"}
    | {"job-name", "kill-on-invalid-dep", "no-requeue", "open-mode", "output", "parsable", "quiet"}
    | {"requeue", "signal", "verbose", "wckey", "wrap"}
)
# Options about each node of a job
_OF_A_NODE = frozenset({"gpus-per-node", "gres", "mem", "ntasks-per-node"})
# Variables that a job has without --export=ALL, too
_BASIC_VARIABLES = frozenset({"HOME", "PATH", "SHELL", "USER"})
# Variables that describe a surrounding job, or set options of another one
_OF_ANOTHER_JOB = r"SLURM|SBATCH_|SRUN_"
# sbatch(1): the default of --signal
_SIGNAL_SECONDS = 60
# Appends to the files of its first two arguments, and runs the others.
_APPEND = 'out=$1 err=$2; shift 2; exec "$@" >>"$out" 2>>"$err"'


def sbatch(scheduler: Any, invocation: Invocation) -> CommandResult:  # noqa: ANN401  see `SpokenQueue`
    """Submit a job, or an array of jobs."""
    jobs: SpokenQueue = scheduler
    request = read_request(invocation)
    options = request.options
    if not jobs.is_restoring:
        for part in request.parts:
            check_values(part)
    lost = [*_lost_options(request), *_dependency_problems(scheduler, options)]
    draft, lost_values = _read_spec(request, jobs)
    lost += lost_values
    if lost and not jobs.is_lenient:
        raise CommandError(1, join_lines(f"sbatch: error: {it}" for it in lost))
    number = jobs.next_number(1 if request.indices == [None] else 1 + len(request.indices))
    script = jobs.script_file(number, request.invocation.stdin)
    elements = [
        _make_job(number, place, index, request, draft, script, jobs)
        for place, index in enumerate(request.indices)
    ]
    dependencies = list(_find_dependencies(scheduler, options))
    for job in elements:
        give_up = functools.partial(scheduler.cancel, job.native_id)
        is_given_up = options.get("kill-on-invalid-dep") == "yes"
        job.blocked = wait_for_jobs(
            dependencies, lambda: scheduler.jobs, WAITS, NEVER, give_up if is_given_up else None
        )
    limit(elements, request.at_a_time, ARRAY_LIMIT, jobs.is_submitted)
    scheduler.submit_all(elements)
    warnings = join_lines(f"sbatch: warning: {it}" for it in lost)
    return CommandResult(returncode=0, stdout=format_id(str(number), options), stderr=warnings)


def _lost_options(request: Request) -> Iterator[str]:
    """Yield why options that this module carries out cannot be kept."""
    if len(request.parts) > 1:
        yield "a heterogeneous job cannot be kept: its parts are several jobs"
    options = request.options
    exported = options.get("export", "ALL").split(",")
    if "NIL" in exported:
        yield "--export=NIL cannot be kept: a job has the variables of Slurm"
    if "get-user-env" in options and "ALL" not in exported:
        yield "--get-user-env cannot be kept: a job has no variables but those that --export names"
    wrong = options.get("open-mode", "truncate") not in {"append", "truncate"}
    if wrong:
        yield f"--open-mode={options['open-mode']} cannot be kept: it is append or truncate"


def _dependency_problems(
    scheduler: Any,  # noqa: ANN401  see `SpokenQueue`
    options: Mapping[str, str],
) -> Iterator[str]:
    text = options.get("dependency", "")
    if not are_dependencies(text):
        known_kinds = "afterok, afterany and afternotok, separated by commas"
        yield f"--dependency={text} cannot be kept: jpsi knows {known_kinds}"
        return
    known = find_jobs([native_id for _, native_id in read_dependencies(options)], scheduler.jobs)
    for native_id in (it for it, found in known.items() if not found):
        if scheduler.is_restoring:
            # it has ended long ago, and so has this job
            continue
        raise CommandError(1, SUBMISSION_FAILED.format(f"Job dependency problem: no job {native_id}"))


def _find_dependencies(
    scheduler: FakeScheduler, options: Mapping[str, str]
) -> Iterator[tuple[DependencyKind, str]]:
    """Yield the jobs that a job waits for; an array is all its elements."""
    if not are_dependencies(options.get("dependency", "")):
        return
    for kind, native_id in read_dependencies(options):
        for job in find_jobs([native_id], scheduler.jobs)[native_id]:
            yield kind, job.native_id


def _read_spec(request: Request, jobs: SpokenQueue) -> tuple[JobSpec, list[str]]:
    """Return the job that the options describe, and why some of them are lost."""
    options = dict(request.options)
    if options.get("partition") == CLUSTER:
        # the one that `sinfo` shows is none of the executor's
        del options["partition"]
    if jobs.system != "slurm" and not _OF_A_NODE.isdisjoint(options):
        # Slurm chooses the number of nodes, and this is one that it may choose
        options.setdefault("nodes", "1")
    words = [
        f"#SBATCH --{name}{f'={word(value)}' if value else ''}"
        for name, value in options.items()
        if name not in _OWN_OPTIONS
    ]
    found = read_script("\n".join(["#!/bin/sh", *words]))
    spec, lost = found.spec, [f"{it}: it cannot be kept" for it in found.lost]
    for option, value in lost_attributes(spec, jobs, "slurm"):
        text = "" if value is True else f"={value}"
        lost.append(f"--{option}{text} cannot be kept: the executor {jobs.system} has no such option")
    signal = SIGNAL.fullmatch(request.options.get("signal", ""))
    if signal is not None and signal["batch"]:
        spec.attributes.warn = (signal["name"], float(signal["seconds"] or _SIGNAL_SECONDS))
    return spec, lost


def _make_job(  # noqa: PLR0913, PLR0917  the parts of a job
    number: int,
    place: int,
    index: int | None,
    request: Request,
    draft: JobSpec,
    script: Path,
    jobs: SpokenQueue,
) -> FakeJob:
    """Return one job of a submission; `place` is that of an element in its array."""
    options, call = request.options, request.invocation
    native_id = str(number) if index is None else f"{number}_{index}"
    # each element has a number of its own, too
    own_number = str(number if index is None else number + 1 + place)
    hosts = [platform.node()] if jobs.is_local else []
    directory = os.path.normpath(Path(call.directory, options.get("chdir", "")))
    patterns = {
        "A": str(number),
        "J": own_number,
        "N": platform.node().partition(".")[0] if jobs.is_local else "%N",
        "a": "4294967294" if index is None else str(index),
        "j": own_number,
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": call.environment.get("USER", ""),
        "x": options["job-name"],
    }

    def path(name: str, default: str) -> str:
        text = expand_pattern(options.get(name) or default, patterns)
        refuse_if(
            {f"--{name}={text}: %N cannot be kept on {jobs.system}": "%N" in text}, 1, "sbatch: error: {}\n"
        )
        return os.path.normpath(os.path.join(directory, text))  # noqa: PTH118  as given

    stdout = path("output", "slurm-%j.out" if index is None else "slurm-%A_%a.out")
    stderr = path("error", stdout.replace("%", "%%"))
    program = interpreter(call.stdin) or ["/bin/sh"]
    command = script_command(jobs, script, call.stdin, program, request.arguments)
    is_appending = options.get("open-mode") == "append"
    if is_appending:
        command = ["/bin/sh", "-c", _APPEND, "sh", stdout, stderr, *command]
    environment = {
        **_exported(options, call, jobs),
        **size_variables(options, ",".join(hosts)),
        **_array_variables(number, index, request.indices),
        "SLURM_CLUSTER_NAME": CLUSTER,
        "SLURM_JOBID": own_number,
        "SLURM_JOB_ID": own_number,
        "SLURM_JOB_PARTITION": options.get("partition", CLUSTER),
        "SLURM_JOB_USER": call.environment.get("USER", ""),
        "SLURM_SUBMIT_DIR": call.directory,
        "SLURM_SUBMIT_HOST": platform.node(),
    }
    spec = attrs.evolve(
        draft,
        name=options["job-name"],
        directory=Path(directory),
        stdin_path=Path(path("input", "/dev/null")) if "input" in options else None,
        stdout_path=None if is_appending else Path(stdout),
        stderr_path=None if is_appending else Path(stderr),
    )
    job = FakeJob(
        native_id,
        name=options["job-name"],
        tag=options.get("comment", ""),
        queue=options.get("partition", CLUSTER),
        project=options.get("account", ""),
        directory=directory,
        stdout=stdout,
        stderr=stderr,
        slots=max(count_tasks(options, requested_nodes(options)), requested_nodes(options)),
        time_limit=read_seconds(options.get("time", "UNLIMITED")),
        array="" if index is None else str(number),
        index=index or 0,
        state=FakeState.HELD if "hold" in options else FakeState.PENDING,
    )
    job.attributes |= {
        "cluster": CLUSTER,
        "command": os.path.normpath(Path(call.directory, request.script)) if request.script else "(null)",
        "nodes": requested_nodes(options),
        "options": dict(options),
        "submit_line": line(*call.argv),
        HOSTS: hosts,
        "own_number": own_number,
        SPEC: with_command(spec, command, environment),
    }
    return job


def _exported(options: Mapping[str, str], call: Invocation, jobs: SpokenQueue) -> dict[str, str]:
    """Return the variables that a job gets from the program that submits it; sbatch(1), --export."""
    own = inherited_variables(call, jobs, _OF_ANOTHER_JOB)
    items = re.split(r"(?<!\\),", options.get("export") or "ALL")
    basic = {name: value for name, value in own.items() if name in _BASIC_VARIABLES}
    exported = own if "ALL" in items else basic
    for item in items:
        name, has_value, value = item.partition("=")
        if has_value:
            exported[name] = value.replace("\\,", ",")
        elif name in own:
            exported[name] = own[name]
    return exported


def _array_variables(number: int, index: int | None, indices: Sequence[int | None]) -> dict[str, str]:
    """Return the variables of an element; sbatch(1), OUTPUT ENVIRONMENT VARIABLES."""
    if index is None:
        return {}
    known = sorted(it for it in indices if it is not None)
    steps = {after - before for before, after in itertools.pairwise(known)}
    return {
        "SLURM_ARRAY_JOB_ID": str(number),
        "SLURM_ARRAY_TASK_COUNT": str(len(known)),
        "SLURM_ARRAY_TASK_ID": str(index),
        "SLURM_ARRAY_TASK_MAX": str(known[-1]),
        "SLURM_ARRAY_TASK_MIN": str(known[0]),
        "SLURM_ARRAY_TASK_STEP": str(min(steps, default=1)),
    }


def reads_stdin(invocation: Invocation) -> bool:
    """Return True if a call reads its standard input: sbatch without a file and without --wrap.

    >>> calls = (["sbatch"], ["sbatch", "-n2"], ["sbatch", "job.sh"], ["sbatch", "--wrap=true"], ["squeue"])
    >>> [reads_stdin(Invocation(argv=it)) for it in calls]
    [True, True, False, False, False]
    """
    if invocation.argv[0] != "sbatch":
        return False
    try:
        parsed = SBATCH.parse(invocation.arguments)
    except CommandError:
        return False
    return not parsed.words and "wrap" not in parsed.options


def started(job: FakeJob) -> None:
    """Give an element its own number, which listings show from its start on."""
    if job.array:
        job.attributes[NUMBER] = job.attributes["own_number"]


def srun(scheduler: Any, invocation: Invocation) -> CommandResult | str:  # noqa: ANN401  see `SpokenQueue`
    """Run tasks as a step of the calling job, with the signal that the job requests before its end."""
    number = invocation.environment.get("SLURM_JOB_ID", "")
    job = next((it for it in scheduler.jobs if it.attributes["own_number"] == number), None)
    launch = _fake_commands["srun"](scheduler, invocation)
    signal = None if job is None else SIGNAL.fullmatch(job.attributes["options"].get("signal", ""))
    if signal is None or signal["batch"] or not isinstance(launch, TaskLaunch) or job is None:
        return launch
    if job.time_limit is None:
        return launch
    left = (
        (job.started or scheduler.clock())
        + job.time_limit
        - scheduler.clock()
        - float(signal["seconds"] or _SIGNAL_SECONDS)
    )
    return attrs.evolve(launch, warning=(_signal_number(signal["name"]), max(0.0, left)))


def _signal_number(name: str) -> int:
    return int(name if name.isdecimal() else Signals[f"SIG{name.upper().removeprefix('SIG')}"])


_SINFO = OptionTable(
    flags="Node|N all|a exact|e long|l noheader|h summarize|s",
    valued="Format|O clusters|M format|o nodes|n partition|p states|t",
    unknown=(1, "sinfo: unrecognized option '{}'\n"),
    abbreviates=True,
)
_SINFO_DEFAULT = "%9P %.5a %.10l %.6D %.6t %N"


def sinfo(_: FakeScheduler, invocation: Invocation) -> str:
    """List the one partition, and this machine as its node."""
    parsed = _SINFO.parse(invocation.arguments, permutes=True).options
    cpus = str(os.cpu_count() or 1)
    columns = {
        "P": ("PARTITION", f"{CLUSTER}*"),
        "R": ("PARTITION", CLUSTER),
        "a": ("AVAIL", "up"),
        "l": ("TIMELIMIT", "infinite"),
        "D": ("NODES", "1"),
        "t": ("STATE", "mix"),
        "T": ("STATE", "mixed"),
        "N": ("NODELIST", platform.node()),
        "n": ("HOSTNAMES", platform.node()),
        "c": ("CPUS", cpus),
        "C": ("CPUS(A/I/O/T)", f"0/{cpus}/0/{cpus}"),
        "m": ("MEMORY", "1"),
        "f": ("AVAIL_FEATURES", "(null)"),
        "G": ("GRES", "(null)"),
        "other": ("", ""),
    }
    names = {it: it if it in columns else "other" for it in string.ascii_letters}
    template = template_of_letters(parsed.get("format") or _SINFO_DEFAULT, names)[0]
    rows = [1] if "noheader" in parsed else [0, 1]
    return join_lines(template.format_map({it: cells[row] for it, cells in columns.items()}) for row in rows)


#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    **_fake_commands,
    "sbatch": sbatch,
    "sinfo": sinfo,
    "srun": srun,
}

#: The reason of pending jobs that can no longer start.
never = NEVER

__all__ = ["commands", "never", "reads_stdin", "started", "unreachable"]
