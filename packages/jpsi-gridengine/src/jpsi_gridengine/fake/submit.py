"""`qsub` of the fake of Grid Engine."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arrays import array_refusal, array_tasks, job_number, limit_running, make_task
from .options import UnknownOptionError, pairs, parse
from .states import node

_QUEUES = frozenset({"main.q", "debug.q"})
_PROJECTS = frozenset({"proj1", "proj2"})
# The parallel environments: with all slots on one node, or with this many on each.
_ENVIRONMENT = re.compile(r"make|smp|mpi-(?P<each>[1-9]\d*)")
_RESOURCES = frozenset({"h_rt", "h_vmem", "mem_free", "exclusive", "gpu", "hostname", "s_rt"})
_LONGEST = 512
_FORBIDDEN = {":": "Colon (':')", "@": "At ('@')", "*": "Asterisk ('*')"}
_KEYWORDS = frozenset({"NONE", "ALL", "TEMPLATE"})


def qsub(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Submit a job whose script is a file or standard input."""
    try:
        arguments, words = parse(invocation.arguments)
        if words:
            invocation = invocation.reading(words[0])
        written, others = parse(_directives(invocation.stdin))
        if others:
            raise UnknownOptionError(others[0])  # noqa: TRY301  as for any other
        options = {"N": posixpath.basename(words[0]) if words else "STDIN", **written, **arguments}
    except OSError:
        return CommandResult(returncode=1, stderr=f"Unable to read script file: {words[0]}\n")
    except UnknownOptionError as e:
        return CommandResult(returncode=2, stderr=f'qsub: invalid option argument "{e}"\n')
    if not invocation.stdin:
        said = "Unable to read script file because of error: no input read from stdin\n"
        return CommandResult(returncode=4, stderr=said)
    name = options["N"]
    if "/" in name:
        return CommandResult(returncode=2, stderr="qsub: argument to -N option must not contain / \n")
    # Grid Engine may use up an id for a refused submission.
    number = str(scheduler.next_number())
    if refusal := _name_refusal(name) or _find_refusal(options):
        return CommandResult(returncode=1, stderr=f"Unable to run job: {refusal}\nExiting.\n")
    tasks = array_tasks(options)
    jobs = []
    for task in tasks or [0]:
        job = _make_job(scheduler, number, options, invocation)
        job.arguments = tuple(words[1:])
        if tasks is not None:
            make_task(job, tasks, task)
        native_id = job.native_id
        job.stdout, job.stderr = (options.get(it, f"{name}.{it}{native_id}") for it in ("o", "e"))
        jobs.append(job)
    limit_running(jobs, options)
    scheduler.submit_all(jobs)
    shown = number if tasks is None else f"{number}.{tasks[0]}-{tasks[-1]}:{tasks.step}"
    kind = "job" if tasks is None else "job-array"
    submitted = f"{shown}\n" if "terse" in options else f'Your {kind} {shown} ("{name}") has been submitted\n'
    return CommandResult(returncode=0, stdout=submitted)


def _directives(script: str) -> list[str]:
    """Return the words of all directives, which may be anywhere in the script."""
    lines = [line.removeprefix("#$") for line in re.split(r"\r?\n", script) if line.startswith("#$")]
    return [word for line in lines for word in _words(line)]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _name_refusal(name: str) -> str | None:
    if not name.isascii() or not name.isprintable() or " " in name:
        return "Error reading answer list from qmaster"
    if name[:1].isdigit():
        return f'denied: "{name}" is not a valid object name (cannot start with a digit)'
    if name.upper() in _KEYWORDS:
        return f'Keyword ("{name.upper()}") not allowed as objectname'
    if len(name) > _LONGEST:
        return f"job name too long, maximum allowed length is {_LONGEST} characters"
    found = next((message for character, message in _FORBIDDEN.items() if character in name), None)
    return None if found is None else f"{found} not allowed in objectname"


def _find_refusal(options: Mapping[str, str]) -> str | None:
    queue, project = options.get("q", "main.q"), options.get("P", "proj1")
    parallel = options.get("pe", "smp 1").partition(" ")[0]
    resources = pairs(options.get("l", ""))
    unknown = sorted(resources.keys() - _RESOURCES)
    is_parallel = _ENVIRONMENT.fullmatch(parallel) is not None
    refusals = {
        f'Job was rejected because job requests unknown queue "{queue}"': queue not in _QUEUES,
        f'job rejected: the requested project "{project}" does not exist': project not in _PROJECTS,
        f'job rejected: the requested parallel environment "{parallel}" does not exist': not is_parallel,
        f'unknown resource "{", ".join(unknown)}"': bool(unknown),
        'attribute "h_rt" is not a time value': not resources.get("h_rt", "1").isdecimal(),
        f"the advance reservation id {options.get('ar')} is invalid": "ar" in options,
    }
    return next((text for text, refused in refusals.items() if refused), None) or array_refusal(options)


def _make_job(
    scheduler: FakeScheduler, number: str, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    resources = pairs(options.get("l", ""))
    slots = options.get("pe", "").partition(" ")[2] or "1"
    queue = options.get("q", "main.q")
    limit = resources.get("h_rt")
    name = options["N"]
    inherited = invocation.environment if "V" in options else {"PATH": invocation.environment["PATH"]}
    known = pairs(options.get("ac", ""))
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
        blocked=_dependency_check(scheduler, options.get("hold_jid", "")),
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
    nodes = [node(index) for index in range(int(slots) // each)]
    return "".join(f"{it} {each} {queue}@{it} UNDEFINED\n" for it in nodes)


def _dependency_check(scheduler: FakeScheduler, dependencies: str) -> Callable[[], str | None] | None:
    """Return a function that says if a job must wait for these jobs; unknown jobs count as ended."""
    ids = frozenset(dependencies.split(",")) - {""}
    if not ids:
        return None

    def blocking_reason() -> str | None:
        unfinished = (job for job in scheduler.listed() if job_number(job) in ids and not job.state.final)
        return "dependency" if any(unfinished) else None

    return blocking_reason


def _count_restarts(job: FakeJob) -> None:
    job.environment["RESTARTED"] = "1" if job.restarts else "0"


def _category(options: Mapping[str, str]) -> str:
    """Return a job's category, the requests that the scheduler compares; accounts repeat it."""
    requested = [f"-{name} {options[name]}" for name in ("l", "q", "pe", "P") if name in options]
    return " ".join(requested) or "NONE"
