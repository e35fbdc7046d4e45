"""Implements `jpsi usage`: shows what jobs that have ended used of what they requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from jpsi_engine.job_store import StoredJob

from .. import messages
from ..output import align, format_about, format_size, quantities
from ..stored_jobs import Amount, Usage, complete_usages, listed_jobs, select_jobs, settle_ends, short_ids
from .job_table import format_age

_UNKNOWN = "-"
_MAX_NAMED = 3
_HEADINGS = ("ID", "INDEX", "NAME", "STATE", "TIME", "CORES", "MEMORY", "SUGGESTION")


def usage(*, jobs: Sequence[str], since: str | None, as_json: bool) -> int:
    """Show what the jobs have used, and return the exit code."""
    known = listed_jobs()
    found = list(settle_ends(select_jobs(jobs, known))) if jobs else known
    if since is not None:
        earliest = datetime.now(UTC) - quantities.parse_duration_option(since, "--since")
        found = [it for it in found if it.status.time >= earliest]
    if jobs:
        _report_unfinished([it for it in found if not it.status.final])
    found = [it for it in found if it.status.final]
    usages = complete_usages(found)
    if as_json:
        messages.show_json([_as_json(*it) for it in zip(found, usages, strict=True)])
    elif found:
        ids = short_ids({it.id for it in known})
        rows = [_cells(job, it, ids[job.id]) for job, it in zip(found, usages, strict=True)]
        has_index = any(job.array_index is not None for job in found)
        lines = [
            [it for it, heading in zip(row, _HEADINGS, strict=True) if has_index or heading != "INDEX"]
            for row in (_HEADINGS, *rows)
        ]
        messages.show(align(lines))
        if untold := sum(not it.is_telling for it in usages):
            which = "1 job that failed or was" if untold == 1 else f"{untold} jobs that failed or were"
            messages.error(f"no suggestion for {which} cancelled: only those that complete show a need")
    return 0


def _report_unfinished(jobs: Sequence[StoredJob]) -> None:
    # the jobs of an array share a name
    names = list(dict.fromkeys(it.name or it.id for it in jobs))
    if len(jobs) == 1:
        state = jobs[0].status.state.value
        messages.error(f"{names[0]} has not ended, and is left out: it is {state}")
    elif jobs:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        listed = ", ".join(names[:_MAX_NAMED])
        messages.error(f"{len(jobs)} jobs have not ended, and are left out: {listed}{more}")


def describe_memory(amount: Amount) -> str:
    """Return how much memory a job requested and used; empty if one of the two is not known."""
    if amount.share is None or amount.used is None or amount.requested is None:
        return ""
    least = "at least " if amount.is_least else ""
    return (
        f"memory: it requested {format_about(amount.requested)}, and used {least}{format_about(amount.used)}"
    )


def _cells(job: StoredJob, used: Usage, shown_id: str) -> Sequence[str]:
    return [
        *(shown_id, _UNKNOWN if job.array_index is None else str(job.array_index)),
        *(messages.printable(job.name or _UNKNOWN), job.status.state.value),
        _cell(used.time, lambda it: format_age(timedelta(seconds=it))),
        _cell(used.cores, "{:.2g}".format),
        _cell(used.memory, format_about),
        " ".join(_suggestions(used)) or _UNKNOWN,
    ]


def _cell(amount: Amount, show: Callable[[float], str]) -> str:
    if amount.used is None:
        return _UNKNOWN
    least = ">=" if amount.is_least else ""
    of = (
        ""
        if amount.share is None or amount.requested is None
        else (f" of {show(amount.requested)} ({amount.share:.0%})")
    )
    return f"{least}{show(amount.used)}{of}"


def _suggestions(used: Usage) -> Iterator[str]:
    time, memory = used.suggested_time, used.suggested_memory
    if time is not None and used.time.is_better(time.total_seconds()):
        yield f"--time {time // timedelta(minutes=1)}m"
    if memory is not None and used.memory.is_better(memory):
        yield f"--memory {format_size(memory)}"


def _as_json(job: StoredJob, used: Usage) -> dict[str, Any]:
    time = used.suggested_time
    return {
        "id": job.id,
        "native_id": job.native_id,
        "array_index": job.array_index,
        "name": job.name,
        "state": job.status.state.value,
        "wall_time": _amount_json(used.time),
        "cpu_time": used.cpu,
        "cores": _amount_json(used.cores),
        "memory": {**_amount_json(used.memory), "is_least": used.memory.is_least},
        "suggestion": {
            "duration": None if time is None else time.total_seconds(),
            "memory": used.suggested_memory,
        },
    }


def _amount_json(amount: Amount) -> dict[str, float | None]:
    return {"requested": amount.requested, "used": amount.used, "share": amount.share}
