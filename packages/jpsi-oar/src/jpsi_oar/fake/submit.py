"""`oarsub` of the fake of OAR.

Tests and `jpsi fake` run jobs on the fake, without a real OAR.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from jpsi.plugin import CommandResult, DependencyKind
from jpsi_testing.fake import (
    Arguments,
    CommandError,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    OptionTable,
    join_lines,
    node_name,
    refuse_if,
    wait_for_jobs,
)

from .runs import make_run_numbers, number_runs

_OPTIONS = OptionTable(
    flags="hold use-job-key|k scanscript|S interactive|I json|J xml|X yaml|Y dumper|D help|h version|V",
    valued="resource|l queue|q property|p reservation|r checkpoint signal type|t directory|d project name|n "
    "anterior|a notify array array-param-file stdout|O stderr|E stagein|s stagein-md5sum resubmit connect|C "
    "import-job-key-from-file|i export-job-key-to-file|e",
    unknown=(1, "Unknown option: {}\n"),
    abbreviates=True,
)
_QUEUES = frozenset({"admin", "default", "besteffort"})
_RESOURCES = frozenset({"nodes", "host", "network_address", "cpu", "core", "gpu", "resource_id"})
_CORES = 4
_LONGEST = 100
_WAITS = "dependency"
_RULES = "[ADMISSION RULE] Modify resource description with type constraints\n"
_DEFAULT_WALLTIME = "[ADMISSION RULE] Set default walltime to 7200.\n"
_FAILED = "[ERROR] Oarsub failed, please verify your request syntax.\n"
# the admission rule "Check if job types are valid"
_TYPE = re.compile(
    r"container(=\w+)?|deploy(=standby)?|desktop_computing|besteffort|cosystem(=standby)?|idempotent|"
    r"placeholder=\w+|allowed=\w+|inner=\w+|timesharing=\S+|token:\w+=\d+|noop(=standby)?|state=permissive|"
    r"(postpone|deadline|expire)=\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?"
)
_DATE = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}\s+\d{1,2}:\d{1,2}:\d{1,2}\s*")
_WALLTIME = re.compile(r"(?:(?P<tree>.*?)[\s,]*,|)\s*walltime=(?P<time>\d+(:\d+){0,2})")


def oarsub(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a command as a job, or as the elements of an array."""
    arguments = _OPTIONS.parse(invocation.arguments, permutes=True)
    if "version" in arguments.values:
        return CommandResult(returncode=0, stdout="OAR version : 2.5.9 (Canicule)\n")
    if len(arguments.words) != 1:
        raise CommandError(5, stdout="Usage: oarsub [options] [-I|-C|<script>]\n")
    trees, seconds = _parse_resources(arguments.last("resource"))
    printed = _RULES if seconds is not None else _DEFAULT_WALLTIME + _RULES
    _check(arguments, printed)
    slots, hosts = _assign(trees, printed)
    count = int(arguments.last("array", "1"))
    numbers = [scheduler.next_number() for _ in range(count)]
    jobs = [_make_job(scheduler, invocation, arguments, numbers, index) for index in range(1, count + 1)]
    for job in jobs:
        job.slots, job.files = slots, {"OAR_NODEFILE": join_lines(hosts)}
        job.time_limit = 7200.0 if seconds is None else seconds
    scheduler.submit_all(jobs)
    printed += join_lines(f"OAR_JOB_ID={number}" for number in numbers)
    printed += f"OAR_ARRAY_ID={numbers[0]}\n" if count > 1 else ""
    if "reservation" in arguments.values:
        printed += "Reservation mode: waiting validation...\nReservation valid --> OK\n"
    return CommandResult(
        returncode=0, stdout=printed, stderr="Simple array job submission is used\n" if count > 1 else ""
    )


def _check(arguments: Arguments, printed: str) -> None:
    """Raise the error with which OAR refuses a job."""
    queue, name = arguments.last("queue", "default"), arguments.last("name")
    unknown = [it for it in arguments.values.get("type", ()) if not _TYPE.fullmatch(it)]
    if unknown:
        raise CommandError(
            254, f"[ADMISSION RULE] Error: unknown job type: {unknown[0]}\n\n", _DEFAULT_WALLTIME
        )
    reservation = arguments.last("reservation", "2030-01-01 00:00:00")
    refuse_if({"Syntax error near the -r or --reservation option.": not _DATE.fullmatch(reservation)}, 7)
    if queue not in _QUEUES:
        raise CommandError(248, f"ERROR : The queue {queue} does not exist\n", printed)
    if "'" in name or len(name) > _LONGEST:
        raise CommandError(8, _FAILED, f"{printed}OAR_JOB_ID=\n")


def _parse_resources(text: str) -> tuple[list[str], float | None]:
    """Return the trees of a request, and its walltime in seconds."""
    found = _WALLTIME.fullmatch(text)
    if "walltime" in text and found is None:
        raise CommandError(255, f"/!\\ Cannot recognize -- {text} -- resource\n")
    tree = text if found is None else found["tree"] or ""
    hours, minutes, seconds = [*map(int, found["time"].split(":")), 0, 0][:3] if found else (0, 0, 0)
    return tree.strip().split("+"), None if found is None else float(hours * 3600 + minutes * 60 + seconds)


def _assign(trees: list[str], printed: str) -> tuple[int, list[str]]:
    """Return the number of slots, and the node of each resource that a job gets."""
    hosts: list[str] = []
    for tree in trees:
        pairs = [part.strip().partition("=")[::2] for part in tree.split("/") if part.strip()]
        if any(name not in _RESOURCES or not value.isdecimal() for name, value in pairs):
            why = f'Bad resource request (ERROR:  column "{pairs[0][0]}" does not exist\n)\n'
            raise CommandError(8, why + _FAILED, f"{printed}OAR_JOB_ID=-5\n")
        wanted = {name: int(value) for name, value in pairs}
        nodes = wanted.get("nodes")
        cores = wanted.get("core", 1) * wanted.get("gpu", 1)
        each = cores if nodes is None or wanted.keys() & {"core", "gpu"} else _CORES
        hosts += [node_name(node) for node in range(nodes or 1) for _ in range(each)]
    return len(hosts), hosts


def _make_job(
    scheduler: FakeScheduler, invocation: Invocation, arguments: Arguments, numbers: list[int], index: int
) -> FakeJob:
    """Return the job, or the element of an array with this index; OAR has given it these numbers."""
    whole, array = arguments.last("name"), str(numbers[0])
    # the tag is the last word of the name
    name, _, tag = whole.rpartition(" ") if " " in whole else ("", "", whole)
    if not tag.startswith("jpsi-"):
        name, tag = whole, ""
    is_besteffort = "besteffort" in arguments.values.get("type", ())
    job = FakeJob(
        array if len(numbers) == 1 else f"{array}.{index}",
        script=f"#!/bin/sh\n{arguments.words[0]}\n",
        name=name,
        tag=tag,
        queue="besteffort" if is_besteffort else arguments.last("queue", "default"),
        project=arguments.last("project", "default"),
        environment={
            **_variables(invocation.environment),
            "OAR_ARRAY_ID": array,
            "OAR_ARRAY_INDEX": str(index),
            "OAR_JOB_NAME": whole,
        },
        directory=arguments.last("directory", invocation.directory),
        stdout=arguments.last("stdout", f"OAR.{numbers[index - 1]}.stdout"),
        stderr=arguments.last("stderr", f"OAR.{numbers[index - 1]}.stderr"),
        blocked=wait_for_jobs(
            [(DependencyKind.ANY, it) for it in arguments.values.get("anterior", ())],
            scheduler.listed,
            _WAITS,
            _WAITS,
        ),
        array="" if len(numbers) == 1 else array,
        index=0 if len(numbers) == 1 else index,
        attributes={
            "types": arguments.values.get("type", []),
            "request": shlex.join(it for it in invocation.argv if not it.startswith("--name=")),
        },
        state=FakeState.HELD if "hold" in arguments.values else FakeState.PENDING,
    )
    number_runs(scheduler, job, numbers[index - 1])
    job.starting = make_run_numbers(scheduler)
    return job


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a job has of its user's login shell; OAR passes on no others."""
    return {name: environment[name] for name in ("HOME", "PATH", "USER") if name in environment}
