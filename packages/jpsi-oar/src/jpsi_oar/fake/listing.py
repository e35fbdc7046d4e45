"""`oarstat` of the fake of OAR: its JSON form, and the selection of jobs by SQL.

Tests and `jpsi fake` run jobs on the fake, without a real OAR.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation, OptionTable, join_lines

from .runs import number_runs

_OPTIONS = OptionTable(
    flags="full|f json|J state|s help|h version|V",
    valued="sql job|j user|u array",
    unknown=(1, "Unknown option: {}\n"),
)
_STATES = {
    FakeState.PENDING: "Waiting",
    FakeState.HELD: "Hold",
    FakeState.RUNNING: "Running",
    FakeState.COMPLETED: "Terminated",
    FakeState.FAILED: "Terminated",
    FakeState.OUT_OF_MEMORY: "Terminated",
}
_COLUMNS = ("job_id", "array_id", "array_index", "job_name", "job_user", "state")
_FRAG = "FRAG_JOB_REQUEST"
_EVENTS = {
    FakeState.CANCELLED: (_FRAG, "SEND_KILL_JOB", "SWITCH_INTO_ERROR_STATE"),
    FakeState.TIMEOUT: (_FRAG, "WALLTIME", "SEND_KILL_JOB", "SWITCH_INTO_ERROR_STATE"),
    FakeState.NODE_FAIL: ("EXIT_VALUE_OAREXEC",),
}
_RESUBMITTED = ("BESTEFFORT_KILL", _FRAG, "SWITCH_INTO_ERROR_STATE", "RESUBMIT_JOB_AUTOMATICALLY")


@attrs.frozen(slots=True)
class Row:
    """A row of OAR's table of jobs: one run of a job."""

    number: int
    job: FakeJob
    #: True for the last run of the job, which has the job's state.
    is_last: bool

    @property
    def state(self) -> str:
        """OAR's word for the state."""
        is_error = not self.is_last or self.job.failed_to_start
        return "Error" if is_error else _STATES.get(self.job.state, "Error")

    @property
    def name(self) -> str:
        """The whole name, with the tag."""
        return " ".join(filter(None, (self.job.name, self.job.tag)))


def select(scheduler: FakeScheduler, condition: str) -> list[Row]:
    """Return the rows for which an SQL condition holds; none if it is wrong, as OAR ignores the error."""
    rows = {row.number: row for row in _rows(scheduler)}
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE jobs ({', '.join(_COLUMNS)})")
        database.executemany(
            f"INSERT INTO jobs VALUES ({', '.join('?' * len(_COLUMNS))})",  # noqa: S608  of constants
            [_values(row) for row in rows.values()],
        )
        with contextlib.suppress(sqlite3.Error):
            found = database.execute(f"SELECT job_id FROM jobs WHERE {condition}")  # noqa: S608  as OAR does
            return [rows[number] for (number,) in found]
    return []


# OAR has run other users' jobs before.
_OLDEST = FakeJob(
    "0",
    owner="oar",
    queue="default",
    project="default",
    attributes={"types": [], "numbers": [0]},
    state=FakeState.COMPLETED,
)


def _rows(scheduler: FakeScheduler) -> Iterator[Row]:
    for job in (_OLDEST, *scheduler.listed()):
        numbers = number_runs(scheduler, job)
        yield from (Row(number, job, number == numbers[-1]) for number in numbers)


def _values(row: Row) -> tuple[object, ...]:
    job = row.job
    return row.number, int(job.number), max(job.index, 1), _text(row.name), job.owner, row.state


def _text(value: str) -> str:
    # sqlite takes no lone surrogates
    return value.encode(errors="surrogateescape").decode(errors="replace")


def oarstat(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List jobs as JSON, or print their states."""
    arguments = _OPTIONS.parse(invocation.arguments)
    numbers = ", ".join(it for it in arguments.values.get("job", ()) if it.isdecimal())
    unfinished = "state NOT IN ('Terminated', 'Error')"
    rows = select(scheduler, arguments.last("sql") or (f"job_id IN ({numbers})" if numbers else unfinished))
    if "json" not in arguments.values:
        return CommandResult(returncode=0, stdout=join_lines(f"{row.number}: {row.state}" for row in rows))
    document = {str(row.number): _fields(row) for row in rows}
    text = json.dumps(document, indent=3, separators=(",", " : "), ensure_ascii=False)
    # with nothing to print, oarstat prints nothing
    return CommandResult(returncode=0, stdout=f"{text}\n" if document else "")


def _fields(row: Row) -> Mapping[str, Any]:
    job = row.job
    started = job.started if row.is_last else job.submitted
    request = f"{job.attributes['request']} --name={row.name}" if job.is_own else ""
    return {
        "Job_Id": row.number,
        "array_id": int(job.number),
        "array_index": max(job.index, 1),
        "name": row.name or None,
        "owner": job.owner,
        "state": row.state,
        "queue": job.queue,
        "project": job.project,
        "types": job.attributes["types"],
        "submissionTime": int(job.submitted),
        "startTime": int(started or 0),
        "stopTime": int(job.ended or 0),
        "scheduledStart": None,
        "exit_code": _wait_status(row),
        "message": "R=1,W=2:0:0,J=B (Karma=0.000,quota_ok)",
        "initial_request": request,
        "assigned_network_address": sorted(set(job.files.get("OAR_NODEFILE", "").split())) if started else [],
        "events": [_event(row, index, kind) for index, kind in enumerate(_event_types(row), 1)],
    }


def _wait_status(row: Row) -> int | None:
    if row.state != "Terminated":
        return None
    return row.job.signal if row.job.signal is not None else (row.job.exit_code or 0) << 8


def _event_types(row: Row) -> tuple[str, ...]:
    if not row.is_last:
        return _RESUBMITTED
    if row.job.failed_to_start:
        return "SWITCH_INTO_ERROR_STATE", "WORKING_DIRECTORY"
    return _EVENTS.get(row.job.state, ("SWITCH_INTO_TERMINATE_STATE",) if row.job.state.final else ())


def _event(row: Row, index: int, kind: str) -> Mapping[str, Any]:
    return {
        "type": kind,
        "description": f"{kind} of the job {row.number}",
        "date": int(row.job.ended or row.job.submitted),
        "job_id": row.number,
        "event_id": index,
        "to_check": "NO",
    }
