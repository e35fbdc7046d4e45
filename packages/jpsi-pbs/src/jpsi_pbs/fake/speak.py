"""The commands of OpenPBS for jobs of jpsi, on any executor: `jpsi speak pbs` puts them on PATH.

They read and answer as the fake does. Only `qsub` differs: it makes specs of jpsi, by the readers that
convert scripts, and refuses what they cannot keep.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from jpsi.plugin import CommandResult, JobSpec, components, word
from jpsi_testing.fake import (
    SPEC,
    Arguments,
    CommandError,
    CommandFunction,
    FakeJob,
    FakeState,
    Invocation,
    SpokenQueue,
    inherited_variables,
    interpreter,
    join_lines,
    limit,
    lost_attributes,
    script_command,
    with_command,
)

from ..directives import FLAGS, parse_options, split_option
from ..openpbs import hooks
from . import by_rules, openpbs_listing, pbs
from .submit import (
    LIMITED,
    NEVER,
    check_options,
    dependency_check,
    element_id,
    parse_arguments,
    read_array,
    read_dependencies,
    read_request,
    refusal,
)

#: The name of the server, and of the queue of jobs that request none.
SERVER = "jpsi"
_RULES = attrs.evolve(openpbs_listing.RULES, server=SERVER, queues=(SERVER,), unknown_queue=None)
# The options of qsub that this module carries out, or that change nothing about a job
_OWN_OPTIONS = frozenset("CJNSVefhjkorvz")
_DEPEND = "W.depend"
# Variables that a job has without -V, too
_BASIC_VARIABLES = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER"})
# Variables that describe a surrounding job
_OF_ANOTHER_JOB = r"PBS_|ENVIRONMENT\Z|NCPUS\Z"
# qsub(1B), ENVIRONMENT VARIABLES: those of the program that a job has under another name, too
_ORIGINAL_VARIABLES = ("HOME", "LANG", "LOGNAME", "MAIL", "PATH", "SHELL", "TZ")
# qsub(1B), -v: commas may stand in quotes, or after a backslash
_ITEM = re.compile(r"""(?:\\.|'[^']*'|"[^"]*"|[^,])+""", re.DOTALL)
_QUOTED = re.compile(r"""\\([\\,'"])|'([^']*)'|"([^"]*)\"""", re.DOTALL)
# The prefix of a path that names another host
_HOST = re.compile(r"\A[A-Za-z0-9.-]*:")
# pbs_resources(7B): the values of resources; one without a value has the default
_SIZE = r"[0-9]+([kmgtp]?[bw])?"
_CHUNK = r"([0-9]+|[A-Za-z][\w-]*=[^:+]+)(:[A-Za-z][\w-]*=[^:+]+)*"
_VALUES = {
    "l.walltime": re.compile(r"(([0-9]+:){0,2}[0-9]+(\.[0-9]*)?)?"),
    "l.mem": re.compile(rf"({_SIZE})?", re.IGNORECASE),
    "l.ncpus": re.compile("[0-9]*"),
    "l.select": re.compile(rf"{_CHUNK}(\+{_CHUNK})*"),
}
# The exit code of qsub
_ILLEGAL = 166
_NO_NUMBER = re.compile(r"[:+]?(ncpus|mpiprocs|ngpus|ompthreads)=(?![0-9]+(?:[:+]|\Z))")
# qsub(1B), -o: what a path has in place of the index of an element
_INDEX = "^array_index^"
_SUFFIXES = {"o": "OU", "e": "ER"}
# The file in which jpsi lists the nodes of a job
_WITH_NODES = 'PBS_NODEFILE=$JPSI_NODEFILE exec "$@"'


def qsub(scheduler: Any, invocation: Invocation) -> CommandResult:  # noqa: ANN401  see `SpokenQueue`
    """Submit a job, or an array of jobs."""
    jobs: SpokenQueue = scheduler
    options, call = read_request(_RULES, invocation)
    check_options(_RULES, options)
    dependencies, draft, lost = _read_spec(options, jobs)
    if lost and not jobs.is_lenient:
        raise CommandError(1, join_lines(f"qsub: {it}" for it in lost))
    indices, at_a_time = read_array(options.last("J"))
    number = jobs.next_number()
    native_id = f"{number}{'[]' if indices else ''}.{SERVER}"
    script = jobs.script_file(number, call.stdin)
    processes = sum(it.computed_process_count for it in components(draft.resources))
    nodes = [platform.node()] * processes if jobs.is_local else []
    node_file = jobs.script_file(number, join_lines(nodes), ".nodes") if nodes else None
    elements = []
    places: list[int | None] = [*indices] or [None]
    for index in places:
        job = _make_job(native_id, index, options, call, draft, script, node_file, jobs)
        job.slots = processes
        job.attributes["nodes"] = nodes
        job.attributes["depend"] = ",".join(f"{kind}:{other}" for kind, other in dependencies)
        job.blocked = dependency_check(scheduler, job.native_id, dependencies)
        elements.append(job)
    limit(elements, at_a_time, LIMITED, jobs.is_submitted)
    scheduler.submit_all(elements)
    warnings = join_lines(f"qsub: warning: {it}" for it in lost)
    stdout = "" if "z" in options.values else f"{native_id}\n"
    return CommandResult(returncode=0, stdout=stdout, stderr=warnings)


def _read_spec(options: Arguments, jobs: SpokenQueue) -> tuple[list[tuple[str, str]], JobSpec, list[str]]:
    """Return the dependencies, the job that the other options describe, and why some of them are lost."""
    words = [
        it
        for letter, values in options.values.items()
        if letter not in _OWN_OPTIONS
        for value in values
        # the queue that `qstat` shows is none of the executor's
        if (letter, value) != ("q", SERVER)
        for it in ([f"-{letter}"] if letter in FLAGS else [f"-{letter}", value])
    ]
    requested = list(parse_options(words))
    lost = [*_lost_words(options)]
    dependencies: list[tuple[str, str]] = []
    depend = dict(requested).get(_DEPEND)
    try:
        dependencies = read_dependencies(depend or "", SERVER)
    except CommandError:
        lost.append(f"-W depend={depend} cannot be kept: jpsi knows afterok, afterany and afternotok")
    found = hooks.read_script(
        join_lines(["#!/bin/sh", *(f"#PBS {_spell(*it, word)}" for it in requested if it[0] != _DEPEND)])
    )
    lost += [f"{it}: it cannot be kept" for it in found.lost]
    for name, value in lost_attributes(found.spec, jobs, "pbs"):
        text = None if value is True else str(value)
        if not jobs.is_restoring and (illegal := _illegal_value(name, text or "")):
            raise refusal(_ILLEGAL, f"Illegal attribute or resource value {illegal}")
        option = _spell(name, text)
        lost.append(f"{option} cannot be kept: the executor {jobs.system} has no such option")
    return dependencies, found.spec, lost


def _illegal_value(name: str, value: str) -> str | None:
    """Return the resource whose value PBS does not understand, as qsub names it; None if there is none."""
    if name == "l.select" and (wrong := _NO_NUMBER.search(value)):
        return f"select.{wrong[1]}"
    is_legal = name not in _VALUES or _VALUES[name].fullmatch(value)
    return None if is_legal else f"Resource_List.{name.removeprefix('l.')}"


def _spell(name: str, value: str | None, quote: Callable[[str], str] = str) -> str:
    letter, text = split_option(name, value)
    return f"-{letter}" if text is None else f"-{letter} {quote(text)}"


def _lost_words(options: Arguments) -> Iterator[str]:
    """Yield why options that this module carries out, and words, cannot be kept."""
    if options.words[1:]:
        yield f"{' '.join(options.words[1:])} cannot be kept: a job of PBS has a script without arguments"
    for letter in "oe":
        if "$" in options.last(letter):
            yield f"-{letter} {options.last(letter)} cannot be kept: jpsi has no variables in paths"


def _make_job(  # noqa: PLR0913, PLR0917  the parts of a job
    native_id: str,
    index: int | None,
    options: Arguments,
    call: Invocation,
    draft: JobSpec,
    script: Path,
    node_file: Path | None,
    jobs: SpokenQueue,
) -> FakeJob:
    """Return one job of a submission."""
    array, name = native_id, options.last("N", "STDIN")
    if index is not None:
        native_id = element_id(array, index)
    queue = options.last("q") or SERVER
    streams = {it: _stream(it, name, native_id, options, call, jobs) for it in "oe"}
    joined = options.last("j")
    stdout = streams["e" if joined == "eo" else "o"]
    stderr = streams["o" if joined == "oe" else "e"]
    submitted = _variables(options, call, jobs)
    chunk = components(draft.resources)[0]
    cores = chunk.cpu_cores_per_process or 1
    environment = {
        "NCPUS": str(cores * (chunk.processes_per_node or 1)),
        "OMP_NUM_THREADS": str(cores),
        **submitted,
        "ENVIRONMENT": "BATCH",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": native_id,
        "PBS_JOBNAME": name,
        **({} if node_file is None else {"PBS_NODEFILE": str(node_file)}),
        "PBS_NODENUM": "0",
        "PBS_O_QUEUE": queue,
        "PBS_QUEUE": queue,
        "PBS_TASKNUM": "1",
        **({} if index is None else _RULES.variables(native_id, array, index)),
    }
    shell = options.last("S").partition("@")[0] or call.environment.get("SHELL") or "/bin/sh"
    program = interpreter(call.stdin) or [shell]
    home = call.environment.get("HOME", "~") if jobs.is_shared else "~"
    command = script_command(jobs, script, call.stdin, program, ())
    if node_file is None:
        command = ["/bin/sh", "-c", _WITH_NODES, "sh", *command]
    duration = draft.attributes.duration
    spec = attrs.evolve(
        draft,
        name=name,
        directory=Path(home),
        stdout_path=Path(stdout),
        stderr_path=Path(stderr),
    )
    job = FakeJob(
        native_id,
        name=name,
        project=options.last("A"),
        queue=queue,
        environment=environment,
        directory=home,
        stdout=stdout,
        stderr=stderr,
        time_limit=None if duration is None else duration.total_seconds(),
        array="" if index is None else array,
        index=index or 0,
        state=FakeState.HELD if "h" in options.values else FakeState.PENDING,
    )
    job.attributes |= {
        "variables": [*submitted, "PBS_O_QUEUE"],
        SPEC: with_command(spec, command, environment),
    }
    return job


def _stream(  # noqa: PLR0913, PLR0917  all that the name of a file depends on
    letter: str, name: str, native_id: str, options: Arguments, call: Invocation, jobs: SpokenQueue
) -> str:
    """Return the file of a stream; qsub(1B), -e and -o."""
    number, *index = re.findall("[0-9]+", native_id.partition(".")[0])
    text = _HOST.sub("", options.last(letter)) or f"{name}.{letter}{'.'.join([number, *index])}"
    path = os.path.join(call.directory, text.replace(_INDEX, "".join(index)))  # noqa: PTH118  as given
    if path.endswith("/") or (jobs.is_shared and Path(path).is_dir()):
        path = f"{path}/{native_id}.{_SUFFIXES[letter]}"
    return os.path.normpath(path)


def _variables(options: Arguments, call: Invocation, jobs: SpokenQueue) -> dict[str, str]:
    """Return the variables with which a job is submitted; qsub(1B), -v, -V and ENVIRONMENT VARIABLES."""
    own = inherited_variables(call, jobs, _OF_ANOTHER_JOB)
    variables = {name: it for name, it in own.items() if "V" in options.values or name in _BASIC_VARIABLES}
    items = itertools.chain.from_iterable(map(_ITEM.findall, options.values.get("v", ())))
    for name, has_value, value in (it.strip().partition("=") for it in items):
        if has_value:
            variables[name] = _QUOTED.sub(lambda it: "".join(filter(None, it.groups())), value)
        elif name in call.environment:
            variables[name] = call.environment[name]
    original = {f"PBS_O_{it}": call.environment[it] for it in _ORIGINAL_VARIABLES if it in call.environment}
    return {
        **variables,
        **original,
        "PBS_O_HOST": platform.node(),
        "PBS_O_SYSTEM": platform.system(),
        "PBS_O_WORKDIR": call.directory,
    }


def reads_stdin(invocation: Invocation) -> bool:
    """Return True if a call reads its standard input: qsub without a file.

    >>> calls = ["qsub"], ["qsub", "-N", "a"], ["qsub", "job.sh"], ["qsub", "--", "true"], ["qstat"]
    >>> [reads_stdin(Invocation(argv=it)) for it in calls]
    [True, True, False, False, False]
    """
    if invocation.argv[0] != "qsub":
        return False
    try:
        return not parse_arguments(_RULES, invocation).words
    except CommandError:
        return False


def started(job: FakeJob) -> None:
    """Do nothing: a listing needs no more of a job that starts."""


#: The reason of pending jobs that can no longer start.
never = NEVER
#: The commands by name.
commands: Mapping[str, CommandFunction] = {"qsub": qsub, **by_rules(_RULES, openpbs_listing.qstat)}
unreachable = pbs.unreachable

__all__ = ["commands", "never", "reads_stdin", "started", "unreachable"]
