"""`bsub` of the fakes of LSF.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import (
    Arguments,
    CommandError,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    join_lines,
    limit,
    node_name,
    parse_dashed,
    refuse_if,
    wait_for_jobs,
)

from .arrays import parse_name
from .flavour import Flavour
from .states import LIMITED, NEVER, WAITS

_QUEUES = frozenset({"normal", "short"})
_SLOTS = 8
_REFUSED = 255
_NAME_LIMIT = 254
_TIME = re.compile(r"(?:(?P<hours>\d+):)?(?P<minutes>\d+)\Z")
_AMOUNT = re.compile(r"\d+([KMGT]B?)?\Z")
_TERM = re.compile(r"(\d+)\*\{([^{}]*)\}")
_SLOTS_PER_NODE = re.compile(r"span\[ptile=(\d+)\]")


_NOT_SUBMITTED = "{}. Job not submitted.\n"
_UNKNOWN_OPTION = _REFUSED, "bsub: illegal option -- {}\nUsage: bsub [-h]\n"
_CONDITION = re.compile(r"(?P<word>\w+)\((?P<id>\d+(?:\[\d+\])?)\)\Z")
_KINDS = {"done": DependencyKind.OK, "ended": DependencyKind.ANY, "exit": DependencyKind.NOTOK}


def bsub(flavour: Flavour, scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a command, or a script from standard input."""
    if "BSUB_CHK_RESREQ" in invocation.environment:
        return "Resource requirement string is valid.\n"
    # The command line overrides directives, which may be anywhere in the script.
    arguments = _parse_options(flavour, invocation.arguments)
    if arguments.words:
        invocation = attrs.evolve(invocation, stdin=" ".join(arguments.words) + "\n")
    directives = _parse_options(flavour, _directives(invocation.stdin))
    if directives.words:
        raise CommandError(_UNKNOWN_OPTION[0], _UNKNOWN_OPTION[1].replace("{}", directives.words[0]))
    options = {**directives.options, **arguments.options}
    _check_options(flavour, options, invocation.stdin)
    dependencies = _dependencies(scheduler, options.get("w", ""))
    number = str(scheduler.next_number())
    queue = options.get("q", invocation.environment.get("LSB_DEFAULTQUEUE", ""))
    array = parse_name(options.get("J", ""))
    # volclava takes an array that is too large for a single job with that name
    elements = [] if array.is_too_large else array.indices
    jobs = [_make_job(number, index, queue or "normal", options, invocation) for index in elements or [0]]
    for job in jobs:
        if flavour.is_lsf_10:
            _set_hosts(job)
        # LSF ends a job that can never start if it was submitted with `-ti`
        give_up = functools.partial(scheduler.cancel, job.native_id) if "ti" in options else None
        job.blocked = wait_for_jobs(dependencies, lambda: scheduler.jobs, WAITS, NEVER, give_up)
    if elements:
        limit(jobs, array.at_a_time, LIMITED)
    scheduler.submit_all(jobs)
    if "BSUB_QUIET" in invocation.environment:
        return ""
    target = f"queue <{queue}>" if queue else "default queue <normal>"
    return f"Job <{number}> is submitted to {target}.\n"


def _set_hosts(job: FakeJob) -> None:
    """Set the variables of LSF 10.1 about the hosts of a job."""
    job.environment["LSB_DJOB_NUMPROC"] = str(job.slots)
    job.files["LSB_DJOB_HOSTFILE"] = join_lines(job.attributes["nodes"])


def _directives(script: str) -> list[str]:
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#BSUB "):
            found = shlex.split(line.removeprefix("#BSUB"), comments=True)
            # LSF takes a word that starts with # as a comment even in quotes, and merges blanks
            uncommented = itertools.takewhile(lambda word: word[:1] != "#", found)
            words += [re.sub(" +", " ", word.strip(" ")) for word in uncommented]
    return words


def _parse_options(flavour: Flavour, words: Iterable[str]) -> Arguments:
    # as getopt does, -ti is -t with the value i, and -app is -a with the value pp
    return parse_dashed(words, flavour.options, _UNKNOWN_OPTION, joined=True, needs_values=False)


def _check_options(flavour: Flavour, options: Mapping[str, str], script: str) -> None:
    """Raise the error with which LSF refuses a job."""
    has_command = any(line and not line.startswith("#") for line in script.splitlines())
    slots, run_limit, memory = options.get("n", "1"), options.get("W", "1"), options.get("M", "1")
    requirements = options.get("R", "")
    has_unit = not memory.isdecimal() or re.search(r"[KMGT]B|/", requirements) is not None
    refusals = {
        "No command is specified": not has_command,
        f"{options.get('q')}: No such queue": options.get("q", "normal") not in _QUEUES,
        "Bad job name": len(options.get("J", "").encode()) > _NAME_LIMIT,
        "Bad argument for option -n": not slots.isdecimal(),
        "Too many processors requested": slots.isdecimal() and int(slots) > _SLOTS,
        f"{run_limit}: Bad RUNLIMIT specification": not _TIME.match(run_limit),
        "Bad time specification": options.get("t", "1:1").count(":") == 0,
        f"{memory}: MEMLIMT value should be a positive integer": not _AMOUNT.match(memory)
        or (has_unit and not flavour.is_lsf_10),
        "Bad resource requirement syntax": requirements.count("[") != requirements.count("]")
        or (re.search(r"affinity|\{", requirements) is not None and not flavour.is_lsf_10),
        "Job level compound resource requirement causes slots requirements conflict": "n" in options
        and "{" in requirements
        and slots != str(sum(number for number, _ in _terms(options))),
        "normal: Queue does not accept EXCLUSIVE jobs": "x" in options,
        "Bad reservation ID": "U" in options,
        "Job array index too large": flavour.is_lsf_10 and parse_name(options.get("J", "")).is_too_large,
    }
    refuse_if(refusals, _REFUSED, _NOT_SUBMITTED)


def _dependencies(scheduler: FakeScheduler, text: str) -> list[tuple[DependencyKind, str]]:
    """Return the kinds and ids in an option `-w`."""
    known = {job.native_id for job in scheduler.listed()}
    found = []
    for match in map(_CONDITION.match, text.split(" && ") if text else ()):
        if match is None or match["word"] not in _KINDS:
            raise CommandError(_REFUSED, _NOT_SUBMITTED.format(f"{text}: Dependency condition syntax error"))
        if match["id"] not in known:
            raise CommandError(_REFUSED, _NOT_SUBMITTED.format(f"{match['id']}: No matching job found"))
        found.append((_KINDS[match["word"]], match["id"]))
    return found


def _make_job(
    number: str, index: int, queue: str, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    """Return a fake job; with an index it is an array element."""
    name = options.get("J", invocation.stdin.splitlines()[-1])
    if index:
        name = f"{name.partition('[')[0]}[{index}]"
    nodes = _nodes(options)
    counts = [f"{name} {nodes.count(name)} " for name in dict.fromkeys(nodes)]
    return FakeJob(
        f"{number}[{index}]" if index else number,
        script=invocation.stdin,
        name=name,
        tag=options.get("Jd", ""),
        queue=queue,
        project=options.get("P", invocation.environment.get("LSB_DEFAULTPROJECT", "default")),
        environment={
            **invocation.environment,
            "LSB_HOSTS": " ".join(nodes),
            "LSB_JOBID": number,
            "LSB_JOBINDEX": str(index),
            "LSB_JOBNAME": name,
            "LSB_MCPU_HOSTS": "".join(counts),
            "LSB_QUEUE": queue,
        },
        directory=invocation.directory,
        stdout=_file(options.get("o"), number, index),
        stderr=_file(options.get("e", options.get("o")), number, index),
        slots=len(nodes),
        time_limit=_seconds(options.get("W", "0")),
        array=number if index else "",
        index=index,
        attributes={"nodes": nodes},
        state=FakeState.HELD if "H" in options else FakeState.PENDING,
    )


def _nodes(options: Mapping[str, str]) -> list[str]:
    """Return the node of each slot; all slots of a term are on one node unless it has a span."""
    slot_nodes: list[str] = []
    for slots, requirements in _terms(options):
        per_node, first = _SLOTS_PER_NODE.search(requirements), len(set(slot_nodes))
        slot_nodes += [
            node_name(first + slot // (int(per_node[1]) if per_node else slots)) for slot in range(slots)
        ]
    return slot_nodes


def _terms(options: Mapping[str, str]) -> list[tuple[int, str]]:
    """Return the terms of the job's requirement: the number of slots, and the requirements of each."""
    requirements = options.get("R", "")
    if "{" not in requirements:
        return [(int(options.get("n", "1")), requirements)]
    return [(int(number), text) for number, text in _TERM.findall(requirements)]


def _file(path: str | None, number: str, index: int) -> str | None:
    return None if path is None else path.replace("%J", number).replace("%I", str(index))


def _seconds(text: str) -> float | None:
    match = _TIME.match(text)
    minutes = 60 * int(match["hours"] or 0) + int(match["minutes"]) if match else 0
    return 60.0 * minutes or None
