"""`bsub` of the fakes of LSF."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arrays import element_attributes, element_name, indices_of, is_too_large, limit_running
from .dependencies import dependency_check, dependency_refusal
from .flavour import Flavour
from .states import node

_QUEUES = frozenset({"normal", "short"})
_SLOTS = 8
_REFUSED = 255
_NAME_LIMIT = 254
_TIME = re.compile(r"(?:(?P<hours>\d+):)?(?P<minutes>\d+)\Z")
_AMOUNT = re.compile(r"\d+([KMGT]B?)?\Z")
_TERM = re.compile(r"(\d+)\*\{([^{}]*)\}")
_SLOTS_PER_NODE = re.compile(r"span\[ptile=(\d+)\]")


class UnknownOptionError(ValueError):
    """An option that bsub does not have."""


def bsub(flavour: Flavour, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a command, or a script from standard input."""
    if "BSUB_CHK_RESREQ" in invocation.environment:
        return CommandResult(returncode=0, stdout="Resource requirement string is valid.\n")
    try:
        # The command line overrides directives, which may be anywhere in the script.
        arguments, command = _parse_options(flavour, list(invocation.arguments))
        if command:
            invocation = attrs.evolve(invocation, stdin=" ".join(command) + "\n")
        directives, others = _parse_options(flavour, _directives(invocation.stdin))
        if others:
            raise UnknownOptionError(others[0])  # noqa: TRY301  as for any other
        options = {**directives, **arguments}
    except UnknownOptionError as e:
        return CommandResult(returncode=_REFUSED, stderr=f"bsub: illegal option -- {e}\nUsage: bsub [-h]\n")
    refusal = _find_refusal(flavour, scheduler, options, invocation.stdin)
    if refusal is not None:
        return CommandResult(returncode=_REFUSED, stderr=f"{refusal}. Job not submitted.\n")
    number = str(scheduler.next_number())
    queue = options.get("q", invocation.environment.get("LSB_DEFAULTQUEUE", ""))
    indices = indices_of(options.get("J", ""))
    # volclava takes an array that is too large for a single job with that name
    elements = [] if is_too_large(indices) else indices
    jobs = [_make_job(number, index, queue or "normal", options, invocation) for index in elements or [0]]
    for job in jobs:
        if flavour.is_lsf_10:
            job.environment["LSB_DJOB_NUMPROC"] = str(job.slots)
            job.files["LSB_DJOB_HOSTFILE"] = "".join(f"{name}\n" for name in job.attributes["nodes"])
        job.blocked = dependency_check(scheduler, job.native_id, options)
    if elements:
        limit_running(jobs, options["J"])
    scheduler.submit_all(jobs)
    if "BSUB_QUIET" in invocation.environment:
        return CommandResult(returncode=0)
    target = f"queue <{queue}>" if queue else "default queue <normal>"
    return CommandResult(returncode=0, stdout=f"Job <{number}> is submitted to {target}.\n")


def _directives(script: str) -> list[str]:
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#BSUB "):
            found = shlex.split(line.removeprefix("#BSUB"), comments=True)
            # LSF takes a word that starts with # as a comment even in quotes, and merges blanks
            uncommented = itertools.takewhile(lambda word: word[:1] != "#", found)
            words += [re.sub(" +", " ", word.strip(" ")) for word in uncommented]
    return words


def _parse_options(flavour: Flavour, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Parse words into options and the words after them."""
    options: dict[str, str] = {}
    while words and words[0].startswith("-"):
        name = words.pop(0).removeprefix("-")
        if name in flavour.plain:
            options[name] = ""
        elif name in flavour.valued:
            options[name] = words.pop(0) if words else ""
        elif name[:1] in flavour.valued and name != "gpu":
            # as getopt does: -ti is -t with the value i, and -app is -a with the value pp
            options[name[0]] = name[1:]
        else:
            raise UnknownOptionError(name)
    return options, words


def _find_refusal(
    flavour: Flavour, scheduler: FakeScheduler, options: Mapping[str, str], script: str
) -> str | None:
    if not any(line and not line.startswith("#") for line in script.splitlines()):
        return "No command is specified"
    slots, limit, memory = options.get("n", "1"), options.get("W", "1"), options.get("M", "1")
    requirements = options.get("R", "")
    has_unit = not memory.isdecimal() or re.search(r"[KMGT]B|/", requirements) is not None
    refusals = {
        f"{options.get('q')}: No such queue": options.get("q", "normal") not in _QUEUES,
        "Bad job name": len(options.get("J", "").encode()) > _NAME_LIMIT,
        "Bad argument for option -n": not slots.isdecimal(),
        "Too many processors requested": slots.isdecimal() and int(slots) > _SLOTS,
        f"{limit}: Bad RUNLIMIT specification": not _TIME.match(limit),
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
        "Job array index too large": flavour.is_lsf_10 and is_too_large(indices_of(options.get("J", ""))),
    }
    found = next((text for text, refused in refusals.items() if refused), None)
    return found or dependency_refusal(scheduler, options.get("w", ""))


def _make_job(
    number: str, index: int, queue: str, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    """Return a fake job; with an index it is an array element."""
    name = options.get("J", invocation.stdin.splitlines()[-1])
    if index:
        name = element_name(name, index)
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
        attributes={
            "options": dict(options),
            "nodes": nodes,
            **(element_attributes(number, index) if index else {}),
        },
        state=FakeState.HELD if "H" in options else FakeState.PENDING,
    )


def _nodes(options: Mapping[str, str]) -> list[str]:
    """Return the node of each slot; all slots of a term are on one node unless it has a span."""
    slot_nodes: list[str] = []
    for slots, requirements in _terms(options):
        per_node, first = _SLOTS_PER_NODE.search(requirements), len(set(slot_nodes))
        slot_nodes += [
            node(first + slot // (int(per_node[1]) if per_node else slots)) for slot in range(slots)
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
