"""Formats the table of `jpsi ls`: a line for each job, in columns that fit the terminal.

`jpsi top` uses its cells. It only returns text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

import jpsi
from jpsi_engine.job_store import StoredJob

from .. import messages
from ..output import COLOURS, Paint, plain, summarize_states
from ..stored_jobs import index_list, job_title

_GAP = "  "
# Columns of this rank are left out before any column is shortened.
_LEFT_OUT_FIRST = 6
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@attrs.frozen
class Row:
    """The row of one job."""

    job: StoredJob
    #: The last known status.
    status: jpsi.JobStatus
    #: Its id as shown.
    id: str
    #: The rows of the jobs of an array, for which this one stands; empty for a single job.
    members: Sequence[Row] = ()
    #: Why it waits in vain, as far as is known; empty if it does not.
    vain_wait: str = ""
    #: What has become of the jobs that repeat it, or those of its members that have failed; empty if none do.
    repeated: str = ""


def fold_arrays(rows: Sequence[Row], ids: Mapping[str, str]) -> list[Row]:
    """Return the rows with one for each array of which there are several jobs, in the place of its last one.

    Args:
        rows: the rows of jobs.
        ids: the ids of arrays as shown.
    """
    arrays: dict[str, list[Row]] = {}
    for row in rows:
        if row.job.array_id is not None:
            arrays.setdefault(row.job.array_id, []).append(row)
    folded = []
    for row in rows:
        members = arrays.get(row.job.array_id or "", [])
        if len(members) <= 1:
            folded.append(row)
        elif members[-1] is row:
            # the job that most needs attention stands for the others
            worst = min(members, key=lambda it: _ATTENTION.index(it.status.state))
            folded.append(Row(worst.job, worst.status, ids[row.job.array_id or ""], members))
    return folded


_ATTENTION = (
    jpsi.JobState.FAILED,
    jpsi.JobState.CANCELED,
    jpsi.JobState.ACTIVE,
    jpsi.JobState.QUEUED,
    jpsi.JobState.NEW,
    jpsi.JobState.COMPLETED,
)


@attrs.frozen
class _Column:
    heading: str
    cells: Sequence[str]
    #: Columns of the highest rank are left out first if there is no room.
    rank: int
    #: The least width to which it may be shortened.
    shortest: int | None = None

    #: Its full width.
    size: int = attrs.field(init=False)

    @size.default
    def _measure(self) -> int:
        return max(map(len, (self.heading, *self.cells)))


def render_lines(
    rows: Sequence[Row], width: int | None, now: datetime, paint: Paint = plain
) -> Iterator[str]:
    """Yield the lines of the table, a heading first.

    If the table is wider than `width`, long cells are shortened, and the least important columns are left
    out. Without a width nothing is cut.
    """
    columns = _columns(rows, now)
    sizes = [column.size for column in columns] if width is None else _fit_widths(columns, width)
    shown = [
        _paint_column(column, size, rows, paint) for column, size in zip(columns, sizes, strict=True) if size
    ]
    for cells in zip(*shown, strict=True):
        yield _GAP.join(cells).rstrip()


def _paint_column(column: _Column, size: int, rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    """Yield the heading and the cells of a column, each padded to its width."""
    is_cut = size < column.size
    texts = [_truncate(text, size) for text in column.cells] if is_cut else column.cells
    yield _paint_cell(_truncate(column.heading, size), "bold", size, paint)
    if column.heading == "STATE" and paint is not plain:
        colours = [COLOURS.get(row.status.state, "") for row in rows]
        yield from (_paint_cell(*it, size, paint) for it in zip(texts, colours, strict=True))
    else:
        yield from (text.ljust(size) for text in texts)


def _truncate(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _paint_cell(text: str, colour: str, size: int, paint: Paint) -> str:
    return paint(text, colour) + " " * (size - len(text))


def table_cells(rows: Sequence[Row], now: datetime) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the headings, and the cells of each job; nothing is cut."""
    columns = _columns(rows, now)
    return [it.heading for it in columns], [[it.cells[index] for it in columns] for index in range(len(rows))]


# The rank of each column, and the least width to which it may be shortened.
_RANKS: Mapping[str, tuple[int, int | None]] = {
    "ID": (0, None),
    "NATIVE ID": (3, 12),
    "INDEX": (1, None),
    "NAME": (1, 12),
    "EXECUTOR": (4, 10),
    "STATE": (0, None),
    "CODE": (2, None),
    "AGE": (5, None),
    "RAN": (2, None),
    "NOTE": (1, 16),
}


def _columns(rows: Sequence[Row], now: datetime) -> list[_Column]:
    cells = [_cells(row, now) for row in rows]
    # the native id of a local process is long, and users do not type it
    are_processes = all(row.job.origin.machine is not None for row in rows)
    ranks = {**_RANKS, "NATIVE ID": (_LEFT_OUT_FIRST, None)} if are_processes else _RANKS
    found = [_Column(heading, [it[heading] for it in cells], *rank) for heading, rank in ranks.items()]
    # columns without any content need no room
    return [it for it in found if it.heading in {"ID", "STATE"} or any(it.cells)]


def _cells(row: Row, now: datetime) -> dict[str, str]:
    cells = _array_cells(row, now) if row.members else _job_cells(row, row.job.native_id, now)
    if "".join(cells.values()).isprintable():
        return cells
    return {name: messages.printable(it).replace("\n", " ") for name, it in cells.items()}


def _array_cells(row: Row, now: datetime) -> dict[str, str]:
    native_ids = {it.job.array_native_id for it in row.members}
    counts = Counter(it.status.state for it in row.members)
    status, failure = row.status, note(row)
    if status.state is jpsi.JobState.FAILED:
        code = f": exit code {status.exit_code}" if not failure and status.exit_code is not None else ""
        shown_id = next(it.id for it in row.members if it.job is row.job)
        failure = (
            f"{job_title(row.job, shown_id, is_named=False)} failed{code}{f': {failure}' if failure else ''}"
        )
        failed = [it.job for it in row.members if it.status.state is status.state and it.job is not row.job]
        failure += index_list(failed, "; also ")
    elif not failure:
        notes = Counter(_open_note(it, row.job.array_id) for it in row.members if not it.status.final)
        del notes[""]
        for text, count in notes.most_common(1):
            failure = text if count == len(row.members) else f"{count} of them: {text}"
    failure = "; ".join(filter(None, [failure, row.repeated]))
    # the native id of an element, for which its plugin is loaded, is not shown
    return {
        **_job_cells(row, native_ids.pop() if len(native_ids) == 1 else None, now),
        "INDEX": "",
        "STATE": summarize_states(counts),
        "CODE": "",
        "AGE": format_age(now - min(it.job.created for it in row.members)),
        "RAN": "",
        "NOTE": failure,
    }


def _job_cells(row: Row, native_id: str | None, now: datetime) -> dict[str, str]:
    job, status = row.job, row.status
    allocation = f"in the allocation of {job.allocation[:8]}" if job.allocation else ""
    return {
        "ID": row.id,
        "NATIVE ID": native_id or "-",
        "INDEX": "" if job.array_index is None else str(job.array_index),
        "NAME": job.name or "-",
        "EXECUTOR": job.origin.name,
        "STATE": status.state.value,
        "CODE": "" if status.exit_code is None else str(status.exit_code),
        "AGE": format_age(now - job.created),
        "RAN": _format_runtime(row, now),
        "NOTE": "; ".join(filter(None, [note(row), row.repeated])) or allocation,
    }


def _fit_widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the width of each column; 0 for one that is left out."""
    sizes = [column.size for column in columns]

    def excess() -> int:
        shown = [size for size in sizes if size]
        return sum(shown) + len(_GAP) * (len(shown) - 1) - width

    for rank in range(_LEFT_OUT_FIRST, 0, -1):
        # long columns are shortened, the longest first, before columns of a lower rank are left out
        for index in sorted(range(len(columns)), key=lambda index: -sizes[index]):
            shortest = columns[index].shortest if rank < _LEFT_OUT_FIRST else None
            if shortest is not None and sizes[index] > shortest and excess() > 0:
                sizes[index] = max(shortest, sizes[index] - excess())
        for index in range(len(columns) - 1, -1, -1):
            if columns[index].rank == rank and excess() > 0:
                sizes[index] = 0
    return sizes


def note(row: Row) -> str:
    """Return a note about a job: why it waits, has failed, or is not known to have ended."""
    status = row.status
    if row.job.damage:
        return row.job.remark or ""
    if status.state is jpsi.JobState.COMPLETED:
        return ""
    if status.final:
        is_plain = status.reason in {jpsi.Reason.EXIT_CODE, jpsi.Reason.CANCELLED}
        return "" if is_plain else status.message or ""
    return _open_note(row, row.job.array_id if row.members else None)


def _open_note(row: Row, shown_id: str | None) -> str:
    return row.job.remark_about(shown_id or row.job.id) or row.status.message or row.vain_wait


def _format_runtime(row: Row, now: datetime) -> str:
    time = runtime(row.job, row.status, now)
    return "" if time is None else format_age(time)


def runtime(job: StoredJob, status: jpsi.JobStatus, now: datetime) -> timedelta | None:
    """Return how long the program of a job ran, or has run so far; None if it has not begun."""
    if job.started is None:
        return None
    return (status.time if status.final else job.program_ended or now) - job.started


def format_age(time: timedelta) -> str:
    """Return a duration for people, in at most five characters for the first three months.

    >>> [format_age(timedelta(seconds=it)) for it in (0, 59, 61, 3600, 90061)]
    ['0s', '59s', '1m1s', '1h0m', '1d1h']
    """
    seconds = max(0, int(time.total_seconds()))
    if seconds < _MINUTE:
        return f"{seconds}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m{seconds % _MINUTE}s"
    if seconds < _DAY:
        return f"{seconds // _HOUR}h{seconds % _HOUR // _MINUTE}m"
    return f"{seconds // _DAY}d{seconds % _DAY // _HOUR}h"
