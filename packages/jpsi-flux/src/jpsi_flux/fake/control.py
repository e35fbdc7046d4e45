"""`flux cancel` and `flux job` of the fake of Flux, and `flux start`; the fake is the only instance.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    NO_ANSWER,
    CommandError,
    CommandFunction,
    FakeJob,
    FakeScheduler,
    Invocation,
    join_lines,
    refuse_if,
)

from .native_ids import format_id, parse_ids

_URGENCIES: Mapping[str, bool] = {"hold": True, "0": True, "default": False, "16": False}


def cancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; print an error about each ended or unknown one, and end the others nonetheless."""
    ids = parse_ids(
        invocation.arguments[1:],
        2,
        "usage: flux cancel [OPTIONS] [JOBID...]\n"
        "flux-cancel: error: argument JOBID: invalid JobID value: '{}'\n",
    )
    errors = []
    for native_id in ids:
        job = _find_job(scheduler, native_id)
        if job is None:
            errors.append(f"{format_id(native_id, invocation)}: unknown job id")
        elif job.state.final:
            errors.append(f"{format_id(native_id, invocation)}: job is inactive")
        elif not job.is_own:
            why = "guests can only raise exceptions on their own jobs"
            errors.append(f"{format_id(native_id, invocation)}: {why}")
        else:
            scheduler.cancel(native_id)
    stderr = join_lines(f"flux-cancel: ERROR: {error}" for error in errors)
    return CommandResult(returncode=1 if errors or not ids else 0, stderr=stderr)


def job(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Change a job's urgency, print a job's decimal id, or accept an exception of a task for its `flux run`.

    The other tasks of that go on, unlike in Flux.
    """
    verb, *words = invocation.arguments[1:] or [""]
    if verb == "id":
        ids = (word for word in words if not word.startswith("--to="))
        return join_lines(parse_ids(ids, 1, "flux-job: malformed input\n"))
    if verb == "raise" and words[:2] == ["--severity=0", "--type=exec"]:
        return ""
    if verb != "urgency" or len(words) != 2 or words[1] not in _URGENCIES:  # noqa: PLR2004  a job, an urgency
        raise CommandError(1, "Usage: flux-job [OPTIONS] COMMAND ARGS\n")
    word, urgency = words
    (native_id,) = parse_ids([word], 1, "flux-job: {}: unknown job\n")
    found = _find_job(scheduler, native_id)
    refusals = {
        "unknown job": found is None,
        "job is inactive": found is not None and found.state.final,
        "urgency cannot be changed once resources are allocated": found is not None
        and found.started is not None,
    }
    refuse_if(refusals, 1, f"flux-job: {word}: {{}}\n")
    (scheduler.hold if _URGENCIES[urgency] else scheduler.release)(native_id)
    return ""


def _find_job(scheduler: FakeScheduler, native_id: str) -> FakeJob | None:
    return next((job for job in scheduler.listed() if job.native_id == native_id), None)


_ATTRIBUTES = {"rank": "0", "size": "1", "version": "0.88.0"}
_UPTIME = " 09:30:51 run 29s,  owner tester,  depth 0,  size 1\n"


def _start(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Run until killed; the fake runs no initial program."""
    return NO_ANSWER


def _getattr(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print an attribute of the broker."""
    name = invocation.arguments[-1]
    refuse_if({f"flux-getattr: {name}: No such file or directory": name not in _ATTRIBUTES}, 1)
    return f"{_ATTRIBUTES[name]}\n"


def _queue(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the only queue, which has no name, in the only format that jpsi uses."""
    if invocation.arguments[1:4] != ("list", "-n", "-o"):
        raise CommandError(2, "usage: flux-queue [-h] {list}\n")
    return "|enabled|started|inf|inf|0-inf\n"


#: The subcommands of `flux` by name.
COMMANDS: Mapping[str, CommandFunction] = {
    "getattr": _getattr,
    "queue": _queue,
    "start": _start,
    "uptime": lambda _scheduler, _invocation: _UPTIME,
}
