"""Implements `jpsi show`: shows all that is known of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

import jpsi
from jpsi.plugin import line
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import messages
from ..error_boundary import SelectionError
from ..output import COLOURS, Paint, terminal
from ..stored_jobs import best_status, job_json, refresh_statuses, select_jobs
from .job_table import format_age


def show(jobs: Sequence[str], *, is_document: bool, as_json: bool, is_refreshing: bool) -> int:
    """Show jobs and return the exit code."""
    found = select_jobs(jobs, job_store.jobs())
    if is_document:
        return _show_documents(found, as_json=as_json)
    statuses = refresh_statuses(found) if is_refreshing else {}
    if is_refreshing:
        found = select_jobs([job.id for job in found], job_store.jobs())
    best = [best_status(job, statuses.get(job.id)) for job in found]
    if as_json:
        messages.show_json(list(map(job_json.details_json, found, best)))
        return 0
    paint = terminal.choose_paint()
    texts = ["".join(_lines(job, status, paint)) for job, status in zip(found, best, strict=True)]
    messages.show("\n".join(texts))
    return 0


def _show_documents(jobs: Sequence[StoredJob], *, as_json: bool) -> int:
    """Show the requests alone: one as a document, or with `as_json` each on a line."""
    if len(jobs) > 1 and not as_json:
        msg = (
            f"these are {len(jobs)} jobs, and a document is one; --json writes a document on each line, "
            "for: jpsi submit --many -"
        )
        raise SelectionError(msg)
    documents = [job_json.render_document(job, as_json=as_json) for job in jobs]
    for job, document in zip(jobs, documents, strict=True):
        if not document:
            msg = f"no document can express the request of job {job.id}"
            raise jpsi.SubmitException(msg)
    messages.show("".join(f"{json.dumps(json.loads(it))}\n" if as_json else it for it in documents))
    return 0


def _lines(job: StoredJob, status: jpsi.JobStatus, paint: Paint) -> Iterator[str]:
    for name, value in (
        ("job", job.id),
        ("name", job.name),
        ("executor", job.origin.name),
        ("machine", job.origin.machine),
        ("native id", job.native_id),
        ("array", job.array_id),
        ("index", None if job.array_index is None else str(job.array_index)),
        ("command", line(job.spec.executable, *(job.spec.arguments or ())) if job.spec.executable else None),
        ("attempt", f"{job.counted_attempt}" if job.counted_attempt > 1 else None),
    ):
        yield from _field(name, value)
    yield from _field("state", status.state.value, paint, COLOURS.get(status.state, ""))
    yield from _field("exit code", None if status.exit_code is None else str(status.exit_code))
    yield from _field("reason", None if status.reason is None else status.reason.value)
    yield from _field("message", status.message)
    yield from _field("remark", None if status.final and not job.damage else job.remark)
    was_submitted = any(it.state is jpsi.JobState.QUEUED for it in job.history)
    never = " (it was never submitted)" if status.final and not was_submitted else ""
    yield from _field("known from", None if status.evidence is None else f"{status.evidence.value}{never}")
    for name, word in status.metadata.items():
        yield from _field(name, str(word))
    yield from _history(job)
    yield from _field("directory", str(job.directory))
    yield from _field("stdout", f"{job.streams.stdout}{_size(job, 'stdout')}")
    yield from _field("stderr", f"{job.streams.stderr}{_size(job, 'stderr')}")
    yield from _field("files", str(job.folder) if job.folder.exists() else None)
    document = job_json.render_document(job)
    yield "requested:\n" if document else ""
    for text in document.splitlines():
        yield f"  {messages.printable(text)}\n"


def _field(name: str, value: str | None, paint: Paint = terminal.plain, colour: str = "") -> Iterator[str]:
    if value is not None:
        first, *more = messages.printable(value).split("\n")
        yield f"{name + ':':<14} {paint(first, colour)}\n"
        yield from (f"{'':<14} {line}\n" for line in more)


def _history(job: StoredJob) -> Iterator[str]:
    previous_time = job.created
    label = "history:"
    for status in job.history[1:] or job.history:
        after = f"  (after {format_age(status.time - previous_time)})" if status.time > previous_time else ""
        yield f"{label:<14} {status.time.astimezone():%Y-%m-%d %H:%M:%S}  {status.state}{after}\n"
        previous_time, label = status.time, ""


def _size(job: StoredJob, stream: Literal["stdout", "stderr"]) -> str:
    """Return how much a job has written, unless its output is on a remote host."""
    try:
        output = job.output(stream)
        part = output.read(0, 0) if output.is_local else None
    except jpsi.JpsiError:
        return ""
    if part is None:
        return "  (not there)" if output.is_local else ""
    return f"  ({part.size} bytes)"
