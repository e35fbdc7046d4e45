"""The fake of the executor `toy`: implements its commands (tsubmit, tstat, ...) on the shared FakeScheduler.

The tests of jpsi-testing use it to run the conformance tests without a real batch system.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping

from jpsi.plugin import CommandResult, DependencyKind
from jpsi.plugin.kit import write_indices
from jpsi_testing.fake import (
    CommandFunction,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    join_lines,
    limit,
    refuse_if,
    wait_for_jobs,
)

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
# The reason of a pending job whose dependency can no longer be satisfied; `tstat` shows VAIN once it is
# cancelled.
_NEVER_STARTS = "waits in vain"


def unreachable(command: str) -> CommandResult:
    """Return the result of a command if the batch system is down."""
    return CommandResult(returncode=3, stderr=f"{command}: cannot contact the toy server\n")


def _tsubmit(scheduler: FakeScheduler, invocation: Invocation) -> str:
    options = _directives(invocation.stdin)
    count = int(options.get("elements", "0"))
    refusals = {
        # as from a client that was killed before it sent the script
        "the script is empty": not invocation.stdin,
        f"unknown option {min(options.keys() - _OPTIONS, default='')}": options.keys() - _OPTIONS,
        f"no queue {options.get('queue')!r}": options.get("queue", "") not in _QUEUES,
        "the name is too long": len(options.get("name", "")) > _LONGEST_NAME,
        "the array is too large": count > _LARGEST_ARRAY,
    }
    refuse_if(refusals, 2, "tsubmit: {}\n")
    number = str(scheduler.next_number())
    # Elements count from 1; the index 0 is a job without an array.
    jobs = [_job(scheduler, number, index, options, invocation) for index in range(1, count + 1) or [0]]
    limit(jobs, int(options.get("at-a-time", "0")), "limit")
    scheduler.submit_all(jobs)
    return f"accepted as job {number}\n"


def _job(
    scheduler: FakeScheduler, number: str, index: int, options: Mapping[str, str], invocation: Invocation
) -> FakeJob:
    """Return a job: an element of an array if the index is 1 or more, else a single job."""
    native_id = f"{number}.{index}" if index else number
    element = {"TOY_ARRAY_ID": number, "TOY_INDEX": str(index)} if index else {}
    after = [it.split(":") for it in options.get("after", "").split(",") if it]
    dependencies = [(DependencyKind(kind), other) for kind, other in after]
    cancel_job = functools.partial(scheduler.cancel, native_id)
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
        blocked=wait_for_jobs(dependencies, scheduler.listed, "waits", _NEVER_STARTS, cancel_job),
    )


def _directives(script: str) -> dict[str, str]:
    """Return the options of the lines `#TOY`, anywhere in the script, as some real systems do."""
    words = [word for line in re.findall(r"^#TOY (.*)$", script, re.MULTILINE) for word in shlex.split(line)]
    return dict(word.partition("=")[::2] for word in words)


def _tstat(scheduler: FakeScheduler, invocation: Invocation) -> str:
    arguments = set(invocation.arguments)
    jobs = scheduler.accounted() if "--finished" in arguments else scheduler.listed()
    shown = [job for job in jobs if "--all" in arguments or _matching_ids(job) & arguments]
    lines = list(_lines(shown))
    return join_lines(["ID STATE CODE RESTARTS SUBMITTED TAG", *lines, f"{len(lines)} lines"])


def _matching_ids(job: FakeJob) -> set[str]:
    """Return the ids by which `tstat` selects a job: its own, and that of its array."""
    return {job.native_id, job.native_id.partition(".")[0]}


def _lines(jobs: Iterable[FakeJob]) -> Iterator[str]:
    """Yield a line for each job; elements of an array that wait share a line."""
    waiting: dict[str, list[int]] = {}
    first: dict[str, FakeJob] = {}
    for job in jobs:
        array, _, index = job.native_id.partition(".")
        if index and job.state is FakeState.PENDING and not job.restarts:
            waiting.setdefault(array, []).append(int(index))
            first.setdefault(array, job)
        else:
            yield _row(job, job.native_id)
    for array, indices in waiting.items():
        yield _row(first[array], f"{array}.{write_indices(indices)}")


def _row(job: FakeJob, shown_id: str) -> str:
    """Return the line of `tstat` for a job; the id may be that of several elements, such as 7.1-3."""
    code = job.shell_code if job.state.final and job.started is not None else "-"
    word = "VAIN" if job.state.final and job.why == _NEVER_STARTS else _WORDS[job.state]
    return f"{shown_id} {word} {code} {job.restarts} {int(job.submitted)} {job.tag}"


def _each(change: Callable[[FakeScheduler, str], bool]) -> CommandFunction:
    """Return a command that applies a method of the scheduler to each job id in its arguments.

    It ignores unknown ids.
    """

    def command(scheduler: FakeScheduler, invocation: Invocation) -> str:
        for native_id in invocation.arguments:
            change(scheduler, native_id)
        return ""

    return command


#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    "tsubmit": _tsubmit,
    "tstat": _tstat,
    "tdel": _each(FakeScheduler.cancel),
    "thold": _each(FakeScheduler.hold),
    "trelease": _each(FakeScheduler.release),
}
