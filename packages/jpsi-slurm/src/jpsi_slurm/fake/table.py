"""The tables that `squeue` prints for people or in the form of `--format`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from jpsi_testing.fake import FakeJob, FakeState, Invocation

from .states import JobFields, format_time, job_fields

#: The default format of squeue(1).
DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
# A point aligns the value to the right.
_FIELD = re.compile(r"%(?P<right>\.?)(?P<width>\d*)(?P<letter>[a-zA-Z])")
#: The short forms of states in squeue(1).
SHORT_STATES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM",
}

# By the letters of squeue(1): the heading, and the function that returns the text for a job at a time
_COLUMNS: Mapping[str, tuple[str, Callable[[FakeJob, JobFields, Invocation, float], str]]] = {
    "A": ("JOBID", lambda job, _fields, _call, _now: job.native_id),
    "D": ("NODES", lambda job, _fields, _call, _now: str(job.attributes.get("nodes", 1))),
    "M": ("TIME", lambda job, _fields, _call, now: _elapsed(job, now)),
    "N": ("NODELIST", lambda _job, fields, _call, _now: fields.nodes),
    "P": ("PARTITION", lambda job, _fields, _call, _now: job.queue),
    "R": ("NODELIST(REASON)", lambda job, fields, _call, _now: _nodes_or_reason(job, fields)),
    "S": ("START_TIME", lambda job, _fields, call, _now: format_time(job.started, call, "N/A")),
    "T": ("STATE", lambda _job, fields, _call, _now: fields.state),
    "V": ("SUBMIT_TIME", lambda job, _fields, call, _now: format_time(job.submitted, call, "N/A")),
    "a": ("ACCOUNT", lambda job, _fields, _call, _now: job.project or "(null)"),
    "i": ("JOBID", lambda job, _fields, _call, _now: job.native_id),
    "j": ("NAME", lambda job, _fields, _call, _now: job.name),
    "k": ("COMMENT", lambda job, _fields, _call, _now: job.tag or "(null)"),
    "r": ("REASON", lambda _job, fields, _call, _now: fields.reason),
    "t": ("ST", lambda _job, fields, _call, _now: SHORT_STATES[fields.state]),
    "u": ("USER", lambda job, _fields, _call, _now: job.owner),
}


def format_table(
    jobs: Iterable[FakeJob], form: str, invocation: Invocation, now: float, *, has_heading: bool
) -> list[str]:
    """Return the lines of a listing.

    Raises:
        ValueError: the form has a letter that the fake does not know.
    """
    if unknown := {field["letter"] for field in _FIELD.finditer(form)} - _COLUMNS.keys():
        msg = f"Invalid job format specification: {', '.join(sorted(unknown))}"
        raise ValueError(msg)
    heading = _line(form, lambda letter: _COLUMNS[letter][0])
    lines = [
        _line(form, lambda letter, job=job: _COLUMNS[letter][1](job, job_fields(job), invocation, now))  # type: ignore[misc]  # a default is how a lambda keeps a value
        for job in jobs
    ]
    return [*([heading] if has_heading else []), *lines]


def _line(form: str, cell: Callable[[str], str]) -> str:
    return _FIELD.sub(lambda field: _cell(field, cell(field["letter"])), form)


def _cell(field: re.Match[str], text: str) -> str:
    if not field["width"]:
        return text
    width = int(field["width"])
    return text[:width].rjust(width) if field["right"] else text[:width].ljust(width)


def _elapsed(job: FakeJob, now: float) -> str:
    seconds = 0 if job.started is None else int((now if job.ended is None else job.ended) - job.started)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _nodes_or_reason(job: FakeJob, fields: JobFields) -> str:
    is_pending = job.state in {FakeState.PENDING, FakeState.HELD}
    return f"({fields.reason})" if is_pending or not fields.nodes else fields.nodes
