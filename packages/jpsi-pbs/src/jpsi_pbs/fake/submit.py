"""`qsub` of the fakes."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from jpsi.plugin import CommandResult
from jpsi.plugin.kit import read_indices
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arguments import Arguments, WrongOptionError, parse
from .arrays import limit_running, make_element
from .dependencies import dependency_check, parse_dependencies
from .native_ids import SERVER

_NAME = re.compile(r"[A-Za-z0-9._+-]+\Z")
_MAX_NAME = 230
_TIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+)\Z")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_REPEATED = frozenset("lWv")
#: The largest number of array elements.
MAX_ARRAY_SIZE = 10_000


@attrs.frozen(slots=True, kw_only=True)
class Rules:
    """The differences between PBS and Torque when jobs are submitted."""

    #: The options, as for getopt(3).
    letters: str
    #: The queues; the first is the default.
    queues: tuple[str, ...]
    #: The exit code and message about an unknown queue.
    unknown_queue: tuple[int, str]
    #: Returns the exit code and message for refused resources; None if they are accepted.
    refused_resources: Callable[[Mapping[str, str]], tuple[int, str] | None]
    #: Returns the node of each process for these resources, as in the node file.
    nodes: Callable[[Mapping[str, str]], list[str]]
    #: The option for the indices of an array; below, the smallest number of elements.
    array: str
    min_elements: int
    #: Returns the variables of an element from its id, its array's id and its index.
    variables: Callable[[str, str, int], dict[str, str]]
    #: The exit code and message about a dependency on an unknown job; None if qsub accepts it.
    unknown_dependency: tuple[int, str] | None
    #: Returns the variables about the job's nodes.
    node_variables: Callable[[Sequence[str]], dict[str, str]] = attrs.field(default=lambda _nodes: {})


def qsub(rules: Rules, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a job whose script is a file or standard input."""
    try:
        arguments = parse(invocation.arguments, rules.letters)
        if arguments.words:
            invocation = invocation.reading(arguments.words[0])
    except WrongOptionError as e:
        return _refused(2, f"invalid option -- '{e}'\nusage: qsub [-a date_time] ...")
    except OSError as e:
        return _refused(1, f"script file:: {e.strerror}")
    script = invocation.stdin
    if "\r\n" in script:
        return _refused(1, "script contains cr, lf")
    prefix = arguments.last("C", invocation.environment.get("PBS_DPREFIX", "#PBS"))
    try:
        options = _directives(script, prefix, rules.letters)
    except ValueError as e:
        return _refused(1, str(e))
    for letter, values in arguments.options.items():
        options[letter] = [*options.get(letter, []), *values] if letter in _REPEATED else values
    if arguments.words:
        options.setdefault("N", [posixpath.basename(arguments.words[0])])
    return _submit_jobs(rules, Arguments(options, arguments.words), scheduler, invocation)


def _directives(script: str, prefix: str, letters: str) -> dict[str, list[str]]:
    """Return the options in the directives before the first command.

    Raises:
        ValueError: a directive is malformed.
    """
    options: dict[str, list[str]] = {}
    for line in script.splitlines():
        text = line.strip()
        if text.startswith(prefix):
            for letter, values in _directive(text.removeprefix(prefix), letters).items():
                options.setdefault(letter, []).extend(values)
        elif text and not text.startswith("#"):
            break
    return options


def _directive(text: str, letters: str) -> dict[str, list[str]]:
    try:
        words = shlex.split(text)
    except ValueError as e:
        msg = "unmatched "
        raise ValueError(msg) from e
    try:
        found = parse(words, letters)
    except WrongOptionError as e:
        msg = f"invalid option -- '{e}'\nqsub: directive error: {text.strip()} "
        raise ValueError(msg) from e
    if found.words:
        msg = f"directive error: {text.strip()} "
        raise ValueError(msg)
    return found.options


def _submit_jobs(
    rules: Rules, options: Arguments, scheduler: FakeScheduler, invocation: Invocation
) -> CommandResult:
    resources = dict(_pairs(options.options.get("l", [])))
    attributes = dict(_pairs(options.options.get("W", [])))
    dependencies = parse_dependencies(attributes.get("depend", ""))
    if refusal := _find_refusal(rules, options, resources):
        return _refused(*refusal)
    if dependencies is None:
        return _refused(2, "illegal -W value\nusage: qsub [-a date_time] ...")
    known = {job.native_id for job in scheduler.listed()}
    if rules.unknown_dependency is not None and not known.issuperset(other for _, other in dependencies):
        return _refused(*rules.unknown_dependency)
    indices = _indices(options.last(rules.array))
    native_id = f"{scheduler.next_number()}{'[]' if indices else ''}.{SERVER}"
    nodes = rules.nodes(resources)
    jobs = []
    for index in indices or [0]:
        job = _make_job(native_id, options, resources, invocation)
        job.slots = len(nodes)
        job.files = {"PBS_NODEFILE": "".join(f"{name}\n" for name in nodes)}
        job.attributes["nodes"] = nodes
        job.environment.update(rules.node_variables(nodes))
        job.queue = options.last("q") or rules.queues[0]
        job.attributes["depend"] = attributes.get("depend", "")
        if indices:
            make_element(job, index)
            job.environment.update(rules.variables(job.native_id, native_id, index))
        job.blocked = dependency_check(scheduler, job.native_id, dependencies)
        jobs.append(job)
    limit_running(jobs, options.last(rules.array))
    scheduler.submit_all(jobs)
    return CommandResult(returncode=0, stdout="" if "z" in options.options else f"{native_id}\n")


def _indices(text: str) -> list[int]:
    """Return the indices of an array; none for a single job."""
    ranges = read_indices(text.partition("%")[0]) if text else []
    return [index for indices in ranges for index in indices]


def _find_refusal(rules: Rules, options: Arguments, resources: Mapping[str, str]) -> tuple[int, str] | None:
    name = options.last("N", "STDIN")
    if len(name.encode()) > _MAX_NAME:
        return 2, "Job name is too long "
    if not _NAME.match(name):
        return 2, "illegal -N value\nusage: qsub [-a date_time] ..."
    if rules.array in options.options:
        text = options.last(rules.array)
        try:
            count = len(_indices(text))
        except ValueError:
            count = 0
        if count < rules.min_elements or (rules.min_elements > 1 and "," in text):
            return 2, f"illegal -{rules.array} value\nusage: qsub [-a date_time] ..."
        if count > MAX_ARRAY_SIZE:
            return 3, "Array job exceeds server or queue size limit"
    if options.last("q") not in {"", *rules.queues}:
        return rules.unknown_queue
    return rules.refused_resources(resources)


def _make_job(
    native_id: str, options: Arguments, resources: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    surrounding = invocation.environment if "V" in options.options else {}
    variables = dict(_pairs(options.options.get("v", [])))
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
        state=FakeState.HELD if "h" in options.options else FakeState.PENDING,
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


def _refused(code: int, message: str) -> CommandResult:
    return CommandResult(returncode=code, stderr=f"qsub: {message}\n")
