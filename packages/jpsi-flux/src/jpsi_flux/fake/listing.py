"""`flux jobs` of the fake of Flux."""

from __future__ import annotations

import json
import re

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .arguments import UnknownOptionError, parse, unrecognized
from .native_ids import format_id, parse_ids
from .states import job_fields

_KNOWN = {"all": False, "no-header": False, "json": False, "count": True, "name": True, "since": True}
_SHORT = {"a": "all", "n": "no-header", "c": "count"}
_DEFAULT_COUNT = "1000"
# The only form that jpsi uses
_SINCE = re.compile(r"-(\d+)d")
_DAY = 86400.0


def jobs(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List the named jobs, or the user's, as a table or as JSON."""
    try:
        arguments = parse(invocation.arguments[1:], _KNOWN, _SHORT)
    except UnknownOptionError as e:
        return unrecognized("jobs", e)
    ids, error = parse_ids(arguments.words)
    if error is not None:
        return CommandResult(returncode=2, stderr=f"usage: flux-jobs [-h] [-a]\nflux-jobs: {error}")
    listed = {job.native_id: job for job in scheduler.listed()}
    if ids:
        # Flux waits for a named job until it can list it
        now = scheduler.clock()
        listed |= {job.native_id: job for job in scheduler.jobs if now < job.submitted + scheduler.lag}
    unknown = [word for word, native_id in zip(arguments.words, ids, strict=True) if native_id not in listed]
    if ids:
        selected = [listed[native_id] for native_id in dict.fromkeys(ids) if native_id in listed]
    else:
        since = _SINCE.fullmatch(arguments.last("since", ""))
        oldest = scheduler.clock() - int(since[1]) * _DAY if since else float("-inf")
        selected = [
            job
            for job in reversed(listed.values())
            if not job.state.final or (("all" in arguments.options or since) and (job.ended or 0.0) >= oldest)
        ]
        selected = [job for job in selected if job.is_own]
        name = arguments.last("name", "")
        selected = [job for job in selected if not name or job_fields(job)["name"] == name]
        selected = selected[: int(arguments.last("count", _DEFAULT_COUNT)) or None]
    return CommandResult(
        returncode=1 if unknown and not selected else 0,
        stdout=_format_jobs(selected, arguments.words, invocation, as_json="json" in arguments.options),
        stderr="".join(f"JobID {word} unknown\n" for word in unknown),
    )


def _format_jobs(
    selected: list[FakeJob], words: tuple[str, ...], invocation: Invocation, *, as_json: bool
) -> str:
    if not as_json:
        rows = [
            (format_id(job.native_id, invocation), job.owner, job.name, job_fields(job)["status"])
            for job in selected
        ]
        return "".join(f"{' '.join(row)}\n" for row in [("JOBID", "USER", "NAME", "STATUS"), *rows])
    if words and not selected:
        return ""
    # a single named job is printed without a list
    document = job_fields(selected[0]) if len(words) == 1 else {"jobs": [job_fields(job) for job in selected]}
    return f"{json.dumps(document)}\n"
