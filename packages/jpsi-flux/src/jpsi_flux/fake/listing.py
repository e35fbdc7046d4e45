"""`flux jobs` of the fake of Flux.

Tests and `jpsi fake` run jobs on the fake, without a real Flux.
"""

from __future__ import annotations

import json
import re

from jpsi.plugin import CommandResult
from jpsi_testing.fake import Arguments, FakeJob, FakeScheduler, Invocation, OptionTable, join_lines

from .native_ids import format_id, parse_ids
from .states import job_fields
from .submit import unrecognized

_JOBS = OptionTable(flags="all|a no-header|n json", valued="count|c name since", unknown=unrecognized("jobs"))
_DEFAULT_COUNT = "1000"
# The only form that jpsi uses
_SINCE = re.compile(r"-(\d+)d")
_DAY = 86400.0


def jobs(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List the named jobs, or the user's, as a table or as JSON."""
    arguments = _JOBS.parse(invocation.arguments[1:])
    usage = "usage: flux-jobs [-h] [-a]\nflux-jobs: error: argument JOBID: invalid JobID value: '{}'\n"
    ids = parse_ids(arguments.words, 2, usage)
    listed = {job.native_id: job for job in scheduler.listed()}
    if ids:
        # Flux waits for a named job until it can list it
        now = scheduler.clock()
        listed |= {job.native_id: job for job in scheduler.jobs if now < job.submitted + scheduler.lag}
    unknown = [word for word, native_id in zip(arguments.words, ids, strict=True) if native_id not in listed]
    if ids:
        selected = [listed[native_id] for native_id in dict.fromkeys(ids) if native_id in listed]
    else:
        selected = _select_own(list(listed.values()), arguments, scheduler.clock())
    return CommandResult(
        returncode=1 if unknown and not selected else 0,
        stdout=_format_jobs(selected, arguments.words, invocation, as_json="json" in arguments.values),
        stderr=join_lines(f"JobID {word} unknown" for word in unknown),
    )


def _select_own(listed: list[FakeJob], arguments: Arguments, now: float) -> list[FakeJob]:
    """Return the user's jobs that the options choose, the newest first."""
    since, name = _SINCE.fullmatch(arguments.last("since", "")), arguments.last("name")
    oldest = now - int(since[1]) * _DAY if since else float("-inf")
    has_ended_ones = since or "all" in arguments.values
    selected = [
        job
        for job in reversed(listed)
        if not job.state.final or (has_ended_ones and (job.ended or 0.0) >= oldest)
    ]
    selected = [it for it in selected if it.is_own and (not name or job_fields(it)["name"] == name)]
    return selected[: int(arguments.last("count", _DEFAULT_COUNT)) or None]


def _format_jobs(
    selected: list[FakeJob], words: tuple[str, ...], invocation: Invocation, *, as_json: bool
) -> str:
    if not as_json:
        rows = [
            (format_id(job.native_id, invocation), job.owner, job.name, job_fields(job)["status"])
            for job in selected
        ]
        return join_lines(map(" ".join, [("JOBID", "USER", "NAME", "STATUS"), *rows]))
    if words and not selected:
        return ""
    # a single named job is printed without a list
    document = job_fields(selected[0]) if len(words) == 1 else {"jobs": [job_fields(job) for job in selected]}
    return f"{json.dumps(document)}\n"
