"""`qsub` of the fake of Grid Engine.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

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

from .arrays import MAX_AJ_TASKS, array_tasks

# sge_submit(1) of 8.1.9, OPTIONS: those without a value
_PLAIN = "clear cwd h hard notify soft terse V verify"
# Those with a value
_VALUED = (
    "a ac ar A b binding c ckpt C dc display dl e hold_jid hold_jid_ad i j jc js jsv l m masterq M now N o P "
    "p pe q R r sc shell S sync t tc v w wd"
)
_ARITY = {**dict.fromkeys(_PLAIN.split(), 0), **dict.fromkeys(_VALUED.split(), 1), "pe": 2}
# Options whose values accumulate
_COLLECTED = frozenset({"ac", "l"})
_REJECTED = "Unable to run job: {}\nExiting.\n"
_WAITS = "dependency"
_QUEUES = frozenset({"main.q", "debug.q"})
_PROJECTS = frozenset({"proj1", "proj2"})
# The parallel environments: with all slots on one node, or with this many on each.
_ENVIRONMENT = re.compile(r"make|smp|mpi-(?P<each>[1-9]\d*)")
_RESOURCES = frozenset({"h_rt", "h_vmem", "mem_free", "exclusive", "gpu", "hostname", "s_rt"})
_LONGEST = 512
_FORBIDDEN = {":": "Colon (':')", "@": "At ('@')", "*": "Asterisk ('*')"}
_KEYWORDS = frozenset({"NONE", "ALL", "TEMPLATE"})


def qsub(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Submit a job whose script is a file or standard input."""
    arguments = _parse(invocation.arguments)
    words = arguments.words
    invocation = invocation.reading_script(words, "Unable to read script file: {file}\n")
    directives = _parse(_directives(invocation.stdin))
    if directives.words:
        raise CommandError(2, f'qsub: invalid option argument "{directives.words[0]}"\n')
    name = posixpath.basename(words[0]) if words else "STDIN"
    options = {"N": name, **_options(directives), **_options(arguments)}
    if not invocation.stdin:
        raise CommandError(4, "Unable to read script file because of error: no input read from stdin\n")
    name = options["N"]
    refuse_if({"qsub: argument to -N option must not contain / ": "/" in name}, 2)
    # Grid Engine may use up an id for a refused submission.
    number = str(scheduler.next_number())
    _check_name(name)
    _check_options(options)
    tasks = array_tasks(options)
    jobs = []
    for task in tasks or [0]:
        job = _make_job(scheduler, number, options, invocation)
        job.arguments = tuple(words[1:])
        if tasks is not None:
            job.native_id, job.array, job.index = f"{number}.{task}", number, task
            job.environment |= {
                "SGE_TASK_ID": str(task),
                "SGE_TASK_FIRST": str(tasks[0]),
                "SGE_TASK_LAST": str(tasks[-1]),
                "SGE_TASK_STEPSIZE": str(tasks.step),
            }
        native_id = job.native_id
        job.stdout, job.stderr = (options.get(it, f"{name}.{it}{native_id}") for it in ("o", "e"))
        jobs.append(job)
    limit(jobs, int(options.get("tc", "0")), "limit")
    scheduler.submit_all(jobs)
    shown = number if tasks is None else f"{number}.{tasks[0]}-{tasks[-1]}:{tasks.step}"
    kind = "job" if tasks is None else "job-array"
    return f"{shown}\n" if "terse" in options else f'Your {kind} {shown} ("{name}") has been submitted\n'


def _parse(words: Iterable[str]) -> Arguments:
    return parse_dashed(words, _ARITY, (2, 'qsub: invalid option argument "-{}"\n'))


def _options(arguments: Arguments) -> dict[str, str]:
    """Return the options; the values of some accumulate."""
    collected = {name: ",".join(arguments.values[name]) for name in _COLLECTED & arguments.values.keys()}
    return arguments.options | collected


def _pairs(text: str) -> Mapping[str, str]:
    """Return the names and values of a list such as `h_rt=60,mem_free=1G`."""
    return dict(part.partition("=")[::2] for part in text.split(",") if part)


def _directives(script: str) -> list[str]:
    """Return the words of all directives, which may be anywhere in the script."""
    lines = [line.removeprefix("#$") for line in re.split(r"\r?\n", script) if line.startswith("#$")]
    return [word for line in lines for word in _words(line)]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _check_name(name: str) -> None:
    """Raise the error about a name that Grid Engine refuses."""
    is_printable = name.isascii() and name.isprintable() and " " not in name
    refusals = {
        "Error reading answer list from qmaster": not is_printable,
        f'denied: "{name}" is not a valid object name (cannot start with a digit)': name[:1].isdigit(),
        f'Keyword ("{name.upper()}") not allowed as objectname': name.upper() in _KEYWORDS,
        f"job name too long, maximum allowed length is {_LONGEST} characters": len(name) > _LONGEST,
        **{f"{it} not allowed in objectname": letter in name for letter, it in _FORBIDDEN.items()},
    }
    refuse_if(refusals, 1, _REJECTED)


def _check_options(options: Mapping[str, str]) -> None:
    """Raise the error with which Grid Engine refuses a job."""
    queue, project = options.get("q", "main.q"), options.get("P", "proj1")
    parallel = options.get("pe", "smp 1").partition(" ")[0]
    resources = _pairs(options.get("l", ""))
    unknown = sorted(resources.keys() - _RESOURCES)
    is_parallel = _ENVIRONMENT.fullmatch(parallel) is not None
    tasks = array_tasks(options) or range(1, 2)
    too_many = f"you tried to submit a job with more than {MAX_AJ_TASKS} tasks"
    refusals = {
        f'Job was rejected because job requests unknown queue "{queue}"': queue not in _QUEUES,
        f'job rejected: the requested project "{project}" does not exist': project not in _PROJECTS,
        f'job rejected: the requested parallel environment "{parallel}" does not exist': not is_parallel,
        f'unknown resource "{", ".join(unknown)}"': bool(unknown),
        'attribute "h_rt" is not a time value': not resources.get("h_rt", "1").isdecimal(),
        f"the advance reservation id {options.get('ar')} is invalid": "ar" in options,
        "job rejected: 0 is an invalid task id": tasks.start == 0,
        f"job rejected: {too_many}": len(tasks) > MAX_AJ_TASKS,
    }
    refuse_if(refusals, 1, _REJECTED)


def _make_job(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    resources = _pairs(options.get("l", ""))
    slots = options.get("pe", "").partition(" ")[2] or "1"
    queue = options.get("q", "main.q")
    limit = resources.get("h_rt")
    name = options["N"]
    inherited = invocation.environment if "V" in options else {"PATH": invocation.environment["PATH"]}
    known = _pairs(options.get("ac", ""))
    awaited = [(DependencyKind.ANY, it) for it in options.get("hold_jid", "").split(",") if it]
    return FakeJob(
        number,
        script=invocation.stdin,
        name=unquote(known["jpsi_name"], errors="surrogatepass") if "jpsi_name" in known else name,
        tag=name,
        queue=queue,
        project=options.get("P", "NONE"),
        environment={
            **inherited,
            "ENVIRONMENT": "BATCH",
            "JOB_ID": number,
            "JOB_NAME": name,
            "NSLOTS": slots,
            "QUEUE": queue,
            "SGE_TASK_ID": "undefined",
        },
        files={"PE_HOSTFILE": _hosts(options["pe"], queue)} if "pe" in options else {},
        directory=options.get("wd", invocation.directory if "cwd" in options else os.path.expanduser("~")),  # noqa: PTH111  as text
        slots=int(slots),
        time_limit=None if limit is None else float(limit),
        blocked=wait_for_jobs(awaited, scheduler.listed, _WAITS, _WAITS),
        starting=_count_restarts,
        attributes={
            "category": _category(options),
            "granted_pe": options.get("pe", "NONE").partition(" ")[0],
        },
        state=FakeState.HELD if "h" in options else FakeState.PENDING,
    )


def _hosts(parallel: str, queue: str) -> str:
    """Return the host file with the slots on each node of a parallel environment."""
    name, _, slots = parallel.partition(" ")
    rule = _ENVIRONMENT.fullmatch(name)
    each = int(slots if rule is None or rule["each"] is None else rule["each"])
    nodes = map(node_name, range(int(slots) // each))
    return join_lines(f"{it} {each} {queue}@{it} UNDEFINED" for it in nodes)


def _count_restarts(job: FakeJob) -> None:
    job.environment["RESTARTED"] = "1" if job.restarts else "0"


def _category(options: Mapping[str, str]) -> str:
    """Return a job's category, the requests that the scheduler compares; accounts repeat it."""
    requested = [f"-{name} {options[name]}" for name in ("l", "q", "pe", "P") if name in options]
    return " ".join(requested) or "NONE"
