"""The fake of the executor `toy`: answers its commands over a fake batch system."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping

from jpsi.plugin import CommandResult, DependencyKind
from jpsi.plugin.kit import write_indices
from jpsi_testing.fake import CommandFunction, FakeJob, FakeScheduler, FakeState, Invocation, limit

_WORDS = {
    FakeState.PENDING: "WAITING",
    FakeState.HELD: "HELD",
    FakeState.RUNNING: "RUNNING",
    FakeState.COMPLETED: "DONE",
    FakeState.FAILED: "ERROR",
    FakeState.CANCELLED: "DELETED",
    FakeState.TIMEOUT: "TIMEUP",
    FakeState.NODE_FAIL: "NODELOST",
    FakeState.OUT_OF_MEMORY: "ERROR",
}
_OPTIONS = frozenset(
    {"tag", "name", "queue", "project", "seconds", "slots", "after", "elements", "at-a-time"}
)
_QUEUES = frozenset({"", "main", "debug"})
_LONGEST_NAME = 200
_LARGEST_ARRAY = 100


def unreachable(command: str) -> CommandResult:
    """Return the result of a command if the batch system is down."""
    return CommandResult(returncode=3, stderr=f"{command}: cannot contact the toy server\n")


def _tsubmit(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    options = _directives(invocation.stdin)
    if refusal := _refusal(options):
        return CommandResult(returncode=2, stderr=f"tsubmit: {refusal}\n")
    number = str(scheduler.next_number())
    count = int(options.get("elements", "0"))
    ids = [f"{number}.{index}" for index in range(1, count + 1)] or [number]
    jobs = [_job(scheduler, native_id, options, invocation) for native_id in ids]
    if "at-a-time" in options:
        limit(jobs, int(options["at-a-time"]), "limit")
    scheduler.submit_all(jobs)
    return CommandResult(returncode=0, stdout=f"accepted as job {number}\n")


def _job(
    scheduler: FakeScheduler, native_id: str, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    array, _, index = native_id.partition(".")
    element = {"TOY_ARRAY_ID": array, "TOY_INDEX": index} if index else {}
    return FakeJob(
        native_id,
        script=invocation.stdin,
        name=options.get("name", ""),
        tag=options.get("tag", ""),
        queue=options.get("queue", "main"),
        project=options.get("project", ""),
        environment={**invocation.environment, "TOY_JOB_ID": native_id, **element},
        directory=invocation.directory,
        slots=int(options.get("slots", "1")),
        time_limit=float(options["seconds"]) if "seconds" in options else None,
        blocked=_blocking_function(scheduler, native_id, options["after"]) if "after" in options else None,
    )


_NEVER_STARTS = "waits in vain"


def _blocking_function(scheduler: FakeScheduler, number: str, after: str) -> Callable[[], str | None]:
    """Return a function that says why a job waits; it deletes a job whose dependency can never be met."""
    dependencies = [part.split(":") for part in after.split(",")]

    def why() -> str | None:
        known = {job.native_id: job.state for job in scheduler.listed()}
        states_met = [
            known[other].meets(DependencyKind(kind)) for kind, other in dependencies if other in known
        ]
        if False in states_met:
            scheduler.cancel(number)
            return _NEVER_STARTS
        return "waits" if None in states_met else None

    return why


def _directives(script: str) -> dict[str, str]:
    """Return the options in a script, wherever the lines stand: real systems are as careless."""
    words = [word for line in re.findall(r"^#TOY (.*)$", script, re.MULTILINE) for word in shlex.split(line)]
    return dict(word.partition("=")[::2] for word in words)


def _refusal(options: Mapping[str, str]) -> str | None:
    if unknown := options.keys() - _OPTIONS:
        return f"unknown option {min(unknown)}"
    if options.get("queue", "") not in _QUEUES:
        return f"no queue {options['queue']!r}"
    if len(options.get("name", "")) > _LONGEST_NAME:
        return "the name is too long"
    if int(options.get("elements", "1")) > _LARGEST_ARRAY:
        return "the array is too large"
    return None


def _tstat(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    arguments = set(invocation.arguments)
    jobs = scheduler.accounted() if "--finished" in arguments else scheduler.listed()
    shown = [job for job in jobs if "--all" in arguments or _names(job) & arguments]
    lines = list(_lines(shown))
    listed = "".join(["ID STATE CODE RESTARTS SUBMITTED TAG\n", *lines, f"{len(lines)} lines\n"])
    return CommandResult(returncode=0, stdout=listed)


def _names(job: FakeJob) -> set[str]:
    return {job.native_id, job.native_id.partition(".")[0]}


def _lines(jobs: Iterable[FakeJob]) -> Iterator[str]:
    """Yield a line for each job; elements of an array that wait share a line."""
    waiting: dict[str, list[FakeJob]] = {}
    for job in jobs:
        array, _, index = job.native_id.partition(".")
        if index and job.state is FakeState.PENDING and not job.restarts:
            waiting.setdefault(array, []).append(job)
        else:
            yield _row(job, job.native_id)
    for array, elements in waiting.items():
        indices = write_indices(int(job.native_id.partition(".")[2]) for job in elements)
        yield _row(elements[0], f"{array}.{indices}")


def _row(job: FakeJob, name: str) -> str:
    code = "-"
    if job.state.final and job.started is not None:
        code = str(128 + job.signal if job.signal is not None else job.exit_code or 0)
    word = "VAIN" if job.state.final and job.why == _NEVER_STARTS else _WORDS[job.state]
    return f"{name} {word} {code} {job.restarts} {int(job.submitted)} {job.tag}\n"


def _each(change: Callable[[FakeScheduler, str], bool]) -> CommandFunction:
    """Return a command that makes one change to each job that it names; unknown jobs are no error."""

    def command(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        for native_id in invocation.arguments:
            change(scheduler, native_id)
        return CommandResult(returncode=0)

    return command


#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    "tsubmit": _tsubmit,
    "tstat": _tstat,
    "tdel": _each(FakeScheduler.cancel),
    "thold": _each(FakeScheduler.hold),
    "trelease": _each(FakeScheduler.release),
}
