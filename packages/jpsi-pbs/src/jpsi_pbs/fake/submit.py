"""`qsub` of the fakes of PBS and Torque.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from jpsi.plugin import DependencyKind, line
from jpsi.plugin.kit import read_indices
from jpsi_testing.fake import (
    Arguments,
    CommandError,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    join_lines,
    limit,
    parse_letters,
    wait_for_jobs,
)

from .native_ids import SERVER, full_id

_NAME = re.compile(r"[A-Za-z0-9._+-]+\Z")
_MAX_NAME = 230
_TIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+)\Z")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_USAGE = "usage: qsub [-a date_time] ..."
_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}
_REPEATED = frozenset("lWv")
#: The reasons of a job that a dependency holds, and of one deleted because it can never be satisfied.
WAITS, NEVER = "depends", "in vain for "
#: The reason of a pending element whose array has reached its limit of running elements.
LIMITED = "array limit"
#: The largest number of array elements.
MAX_ARRAY_SIZE = 10_000


@attrs.frozen(slots=True, kw_only=True)
class Rules:
    """The differences between PBS and Torque in commands that submit and change jobs."""

    #: The options, as for getopt(3).
    letters: str
    #: The queues; the first is the default.
    queues: tuple[str, ...]
    #: The exit code and message about an unknown queue; None if any name is that of a queue.
    unknown_queue: tuple[int, str] | None
    #: Raises the error of `qsub` about these resources, if it refuses them.
    check_resources: Callable[[Mapping[str, str]], None]
    #: Returns the node of each process for these resources, as in the node file.
    nodes: Callable[[Mapping[str, str]], list[str]]
    #: The option for the indices of an array.
    array: str
    #: The smallest number of elements of an array.
    min_elements: int
    #: Returns the variables of an element from its id, its array's id and its index.
    variables: Callable[[str, str, int], dict[str, str]]
    #: The exit code and message about a dependency on an unknown job; None if qsub accepts it.
    unknown_dependency: tuple[int, str] | None
    #: Returns the variables about the job's nodes.
    node_variables: Callable[[Sequence[str]], dict[str, str]] = attrs.field(default=lambda _nodes: {})
    #: True if an id of another server is malformed; otherwise it counts as unknown.
    refuses_other_servers: bool
    #: The message of each command about unknown jobs, "" for none. `{}` is the id in all of these messages.
    unknown: Mapping[str, str]
    #: The exit code and message about finished jobs.
    finished: tuple[int, str]
    #: The exit code and message about an array element that has ended before others; None if it is treated
    #: like other jobs.
    ended_element: tuple[int, str] | None = None
    #: The exit code and message about a held array element; None if it is treated like other jobs.
    held_element: tuple[int, str] | None = None
    #: True if the server forgets finished jobs without accounting.
    forgets_finished: bool = False
    #: The name of the server.
    server: str = SERVER


def qsub(rules: Rules, scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a job whose script is a file or standard input."""
    options, invocation = read_request(rules, invocation)
    return _submit_jobs(rules, options, scheduler, invocation)


def parse_arguments(rules: Rules, invocation: Invocation) -> Arguments:
    """Parse the arguments of a call of qsub.

    Raises:
        CommandError: qsub does not have an option.
    """
    unknown = 2, f"qsub: invalid option -- '{{}}'\n{_USAGE}\n"
    return parse_letters(invocation.argv, rules.letters, unknown)


def read_request(rules: Rules, invocation: Invocation) -> tuple[Arguments, Invocation]:
    """Return the options of a call of qsub, with those of its script, and the call with the script as input.

    Raises:
        CommandError: qsub itself refuses the script or its options.
    """
    arguments = parse_arguments(rules, invocation)
    words = arguments.words
    if words and invocation.argv[-len(words) - 1] == "--":
        # qsub(1B): the command of a job without a script
        invocation, words = attrs.evolve(invocation, stdin=f"#!/bin/sh\nexec {line(*words)}\n"), ()
    invocation = invocation.reading_script(words, "qsub: script file:: {error.strerror}\n")
    if "\r\n" in invocation.stdin:
        raise refusal(1, "script contains cr, lf")
    prefix = arguments.last("C", invocation.environment.get("PBS_DPREFIX", "#PBS"))
    options = _directives(invocation.stdin, prefix, rules.letters)
    for letter, values in arguments.values.items():
        options[letter] = [*options.get(letter, []), *values] if letter in _REPEATED else values
    if words:
        options.setdefault("N", [posixpath.basename(words[0])])
    return Arguments(options, words), invocation


def refusal(code: int, message: str) -> CommandError:
    """Return the error with which qsub refuses a job."""
    return CommandError(code, f"qsub: {message}\n")


def _directives(script: str, prefix: str, letters: str) -> dict[str, list[str]]:
    """Return the options in the directives before the first command."""
    options: dict[str, list[str]] = {}
    for text in map(str.strip, script.splitlines()):
        if text.startswith(prefix):
            for letter, values in _directive(text.removeprefix(prefix), letters).items():
                options.setdefault(letter, []).extend(values)
        elif text and not text.startswith("#"):
            break
    return options


def _directive(text: str, letters: str) -> Mapping[str, list[str]]:
    about = f"directive error: {text.strip()} "
    try:
        words = shlex.split(text)
    except ValueError as e:
        raise refusal(1, "unmatched ") from e
    found = parse_letters(["qsub", *words], letters, (1, f"qsub: invalid option -- '{{}}'\nqsub: {about}\n"))
    if found.words:
        raise refusal(1, about)
    return found.values


def _submit_jobs(rules: Rules, options: Arguments, scheduler: FakeScheduler, invocation: Invocation) -> str:
    resources, attributes = (dict(_pairs(options.values.get(it, []))) for it in "lW")
    depend = attributes.get("depend", "")
    check_options(rules, options)
    rules.check_resources(resources)
    dependencies = read_dependencies(depend, rules.server)
    known = {job.native_id for job in scheduler.listed()}
    if rules.unknown_dependency is not None and not known.issuperset(other for _, other in dependencies):
        raise refusal(*rules.unknown_dependency)
    indices, at_a_time = read_array(options.last(rules.array))
    native_id = f"{scheduler.next_number()}{'[]' if indices else ''}.{rules.server}"
    nodes = rules.nodes(resources)
    jobs = []
    for index in indices or [0]:
        job = _make_job(native_id, options, resources, invocation)
        job.queue = options.last("q") or rules.queues[0]
        job.slots = len(nodes)
        job.files = {"PBS_NODEFILE": join_lines(nodes)}
        job.attributes |= {"nodes": nodes, "depend": depend}
        job.environment |= rules.node_variables(nodes)
        if indices:
            job.array, job.index = native_id, index
            job.native_id = element_id(native_id, index)
            job.environment |= rules.variables(job.native_id, native_id, index)
        job.blocked = dependency_check(scheduler, job.native_id, dependencies)
        jobs.append(job)
    limit(jobs, at_a_time, LIMITED)
    scheduler.submit_all(jobs)
    return "" if "z" in options.values else f"{native_id}\n"


def element_id(array: str, index: int) -> str:
    """Return the native id of an element of an array."""
    return array.replace("[]", f"[{index}]", 1)


def read_array(text: str) -> tuple[list[int], int]:
    """Return the indices of an array, none for a single job, and its limit of running elements."""
    ranges, _, at_a_time = text.partition("%")
    return [index for indices in read_indices(ranges) for index in indices] if text else [], int(
        at_a_time or 0
    )


def check_options(rules: Rules, options: Arguments) -> None:
    """Raise the error about a name, an array or a queue that qsub or the server refuses."""
    name, text = options.last("N", "STDIN"), options.last(rules.array)
    if len(name.encode()) > _MAX_NAME:
        raise refusal(2, "Job name is too long ")
    if not _NAME.match(name):
        raise refusal(2, f"illegal -N value\n{_USAGE}")
    if rules.array in options.values:
        try:
            count = len(read_array(text)[0])
        except ValueError:
            count = 0
        if count < rules.min_elements or (rules.min_elements > 1 and "," in text):
            raise refusal(2, f"illegal -{rules.array} value\n{_USAGE}")
        if count > MAX_ARRAY_SIZE:
            raise refusal(3, "Array job exceeds server or queue size limit")
    if rules.unknown_queue is not None and options.last("q") not in {"", *rules.queues}:
        raise refusal(*rules.unknown_queue)


def read_dependencies(text: str, server: str) -> list[tuple[str, str]]:
    """Return the kinds and ids in a `depend=`.

    Raises:
        CommandError: qsub refuses it.
    """
    parts = [part.split(":") for part in text.split(",")] if text else []
    found = [(kind, full_id(native_id, server)) for kind, *ids in parts for native_id in ids or [""]]
    if any(kind not in _KINDS or native_id is None for kind, native_id in found):
        raise refusal(2, f"illegal -W value\n{_USAGE}")
    return [(kind, native_id or "") for kind, native_id in found]


def dependency_check(
    scheduler: FakeScheduler, native_id: str, dependencies: list[tuple[str, str]]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function deletes a job that can never start, also if it depends on an unknown job.
    """
    return wait_for_jobs(
        [(_KINDS[kind], other) for kind, other in dependencies],
        lambda: (*scheduler.listed(), *scheduler.accounted()),
        WAITS,
        f"{NEVER}{{}}",
        lambda: scheduler.cancel(native_id),
        unknown=False,
    )


def _make_job(
    native_id: str, options: Arguments, resources: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    surrounding = invocation.environment if "V" in options.values else {}
    variables = dict(_pairs(options.values.get("v", [])))
    name, number = options.last("N", "STDIN"), native_id.partition(".")[0]
    # PBS_O_ variables do not reach the job, and HOME is the user's own.
    own = {key: value for key, value in surrounding.items() if not key.startswith("PBS_O_")}
    home = invocation.environment.get("HOME", "/")
    files = {it: options.last(it, f"{name}.{it}{number}") for it in "oe"}
    streams = {it: posixpath.join(invocation.directory, file) for it, file in files.items()}
    joined = options.last("j", "n")
    return FakeJob(
        native_id,
        script=invocation.stdin,
        name=name,
        tag=variables.get("JPSI_TAG", ""),
        project=options.last("A"),
        environment={
            "PATH": f"{invocation.folder}:{_PATH}" if invocation.folder else _PATH,
            **own,
            **variables,
            "HOME": home,
            "ENVIRONMENT": "BATCH",
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_JOBID": native_id,
            "PBS_JOBNAME": name,
            "PBS_NODENUM": "0",
            "PBS_O_WORKDIR": invocation.directory,
            "PBS_TASKNUM": "1",
        },
        directory=home,
        stdout=streams["e" if joined == "eo" else "o"],
        stderr=streams["o" if joined == "oe" else "e"],
        time_limit=parse_seconds(resources.get("walltime", "")),
        attributes={"variables": [*{**own, **variables}], "resources": dict(resources)},
        state=FakeState.HELD if "h" in options.values else FakeState.PENDING,
    )


def variables_of(job: FakeJob) -> dict[str, str]:
    """Return the variables with which a job was submitted, as qstat prints them."""
    return {name: job.environment[name] for name in job.attributes["variables"] if name in job.environment}


def _pairs(values: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values in lists such as `a=1,b=2`; a dependency has commas of its own."""
    for text in values:
        parts = [text] if text.startswith("depend=") else text.split(",")
        yield from (part.partition("=")[::2] for part in parts)


class NamedNodeError(ValueError):
    """A request for a node by its name."""


def parse_nodes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers of nodes in a `-l nodes=`, each with the number of processes per node.

    Raises:
        ValueError: a number is invalid; it is a `NamedNodeError` if there is a name instead.
    """
    for part in text.split("+"):
        number, *properties = part.split(":")
        if not number.isdecimal():
            raise NamedNodeError(number)
        yield (
            parse_positive(number),
            parse_positive(dict(it.partition("=")[::2] for it in properties).get("ppn", "1")),
        )


def parse_positive(text: str) -> int:
    """Parse a number that is at least 1.

    Raises:
        ValueError: it is none.
    """
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse_seconds(text: str) -> float | None:
    """Return the seconds of a time, given as seconds or as hours:minutes:seconds; None if it is neither."""
    match = _TIME.match(text)
    return None if match is None else int(match[1] or 0) * 3600.0 + int(match[2] or 0) * 60 + int(match[3])
