"""Implements `jpsi ls`: lists jobs and their states, once or with `--watch` again and again."""

from __future__ import annotations

import fnmatch
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import attrs

import jpsi
from jpsi.plugin import word
from jpsi_engine.job_store import Origin, StoredJob

from .. import messages
from ..error_boundary import SelectionError, executor_names
from ..output import quantities, summarize_states, terminal
from ..stored_jobs import (
    best_status,
    describe_repetitions,
    describe_vain_waits,
    find_repetitions,
    has_failed,
    job_json,
    listed_jobs,
    recall_jobs,
    recover_remote_jobs,
    refresh_statuses,
    select_jobs,
    shown_ids,
)
from . import job_table
from .job_table import Row

T = TypeVar("T")

#: How long jobs that have ended are listed by default.
RECENT = timedelta(days=1)
# The seconds between two updates of the screen.
_INTERVAL_SECONDS = 2.0
# The largest share of the time that updates may take.
_MAX_SHARE = 0.2


@attrs.frozen(kw_only=True)
class JobFilter:
    """The filter of the listed jobs."""

    states: frozenset[jpsi.JobState]
    executor: str | None
    name: str | None
    #: The ids of the jobs that were named; None if none were.
    ids: frozenset[str] | None = None
    #: How long ago a job may have ended; None is no limit.
    since: timedelta | None
    #: True if the user did not name such a time, nor jobs.
    is_default_age: bool = False

    def select(self, jobs: Iterable[StoredJob], now: datetime) -> list[StoredJob]:
        """Return the jobs that the filter accepts."""
        return [job for job in jobs if self._matches(job, now)]

    def _matches(self, job: StoredJob, now: datetime) -> bool:
        status, origin = job.status, job.origin
        return (
            not (status.final and self.since is not None and now - status.time > self.since)
            and (not self.states or status.state in self.states)
            and self.matches_origin(origin)
            and (self.ids is None or job.id in self.ids)
            and self.matches_name(job)
        )

    def matches_name(self, job: StoredJob) -> bool:
        """Return True if the filter accepts jobs of the name of this one."""
        # a name may have the characters of patterns
        return self.name is None or self.name == job.name or fnmatch.fnmatchcase(job.name or "", self.name)

    def matches_origin(self, origin: Origin) -> bool:
        """Return True if the filter accepts the jobs of an executor or target."""
        return self.executor is None or self.executor.lower() in {origin.name.lower(), origin.executor}


def _runtime(job: StoredJob) -> timedelta:
    return job_table.runtime(job, job.status, datetime.now(UTC)) or timedelta(0)


_SORT_KEYS: Mapping[str, Callable[[StoredJob], Any]] = {
    "time": lambda job: job.created,
    "name": lambda job: job.name or "",
    "state": lambda job: list(jpsi.JobState).index(job.status.state),
    "executor": lambda job: job.origin.name,
    "runtime": _runtime,
}


@attrs.frozen(kw_only=True)
class ListView:
    """The order of the listed jobs, and how many of them are shown."""

    #: The order, a key of `_SORT_KEYS`; None is the order of the submissions.
    sort: str | None = None
    #: The number of rows, the last ones; None is no limit.
    limit: int | None = None
    #: True if each job of an array has a row of its own, and each job in the allocation of another.
    has_members: bool = True

    def unfolded(self, jobs: Sequence[StoredJob]) -> Sequence[StoredJob]:
        """Return the jobs that do not run in the allocation of another one of them."""
        ids = set() if self.has_members else {job.id for job in jobs}
        return [job for job in jobs if job.allocation not in ids]

    def ordered(self, jobs: Sequence[StoredJob]) -> Sequence[StoredJob]:
        """Return the jobs in this order."""
        return jobs if self.sort is None else sorted(jobs, key=_SORT_KEYS[self.sort])

    def cut(self, items: Sequence[T]) -> Sequence[T]:
        """Return the last items, as many as are shown."""
        return items if self.limit is None else items[-self.limit :]


def ls(  # noqa: PLR0913  the options
    *,
    jobs: Sequence[str],
    is_all: bool,
    since: str | None,
    states: Iterable[str],
    executor: str | None,
    name: str | None,
    sort: str | None,
    limit: int | None,
    has_members: bool,
    only_ids: bool,
    as_json: bool,
    is_refreshing: bool,
    is_watching: bool,
) -> int:
    """List the jobs and return the exit code."""
    recent = RECENT if since is None else quantities.parse_duration_option(since, "--since")
    job_filter = JobFilter(
        states=frozenset(jpsi.JobState(state.upper()) for state in states),
        executor=executor,
        name=name,
        ids=frozenset(it.id for it in select_jobs(jobs, listed_jobs())) if jobs else None,
        since=None if is_all or (jobs and since is None) else recent,
        is_default_age=since is None and not is_all and not jobs,
    )
    if executor is not None:
        _check_executor(executor)
    if is_refreshing and executor is not None:
        recover_remote_jobs(executor)
    view = ListView(sort=sort, limit=limit, has_members=has_members)
    if is_watching:
        return _watch(job_filter, view, is_refreshing=is_refreshing)
    return _list(job_filter, view, only_ids=only_ids, as_json=as_json, is_refreshing=is_refreshing)


def _check_executor(name: str) -> None:
    """Raise SelectionError if no executor and no target has this name, nor any job on disk."""
    known = executor_names()
    if name.lower() in known:
        return
    known |= {word for job in listed_jobs() for word in (job.origin.name.lower(), job.origin.executor)}
    if name.lower() not in known:
        msg = f"there is no executor or target {name!r}; known are {', '.join(sorted(known))}"
        raise SelectionError(msg)


def _list(
    job_filter: JobFilter, view: ListView, *, only_ids: bool, as_json: bool, is_refreshing: bool
) -> int:
    # garbage collections among thousands of jobs cost time, and the process ends soon
    gc.disable()
    jobs = listed_jobs()
    statuses: Mapping[str, jpsi.JobStatus] = {}
    if is_refreshing:
        statuses = refresh_statuses(job_filter.select(jobs, datetime.now(UTC)))
        jobs = listed_jobs()
    now = datetime.now(UTC)
    found, ids = job_filter.select(jobs, now), shown_ids(jobs)
    if only_ids:
        messages.show("".join(f"{it}\n" for it in _ids(_rows(found, statuses, view, ids), jobs)))
    elif as_json:
        shown = view.cut(view.ordered(found))
        messages.show_json(
            [job_json.summary_json(job, best_status(job, statuses.get(job.id))) for job in shown]
        )
    else:
        rows = _rows(found, statuses, view, ids)
        _show_table(_with_notes(rows, jobs, ids), now)
        if not view.has_members:
            _report_folded_jobs(rows, found)
        if job_filter.is_default_age and view.limit is None and terminal.is_terminal():
            _report_hidden_jobs(_hidden_jobs(job_filter, view, jobs, found))
        if not is_refreshing and terminal.is_terminal():
            _report_uncertain_ends(found)
    if job_filter.executor is not None and not any(
        map(job_filter.matches_origin, {it.origin for it in jobs})
    ):
        messages.error(f"there are no jobs of {job_filter.executor!r}, however long ago")
    name = job_filter.name
    if name is not None and not any(map(job_filter.matches_name, jobs)):
        is_beginning = any((it.name or "").startswith(name) for it in jobs)
        hint = f"; those that begin so: --name {word(f'{name}*')}" if is_beginning else ""
        messages.error(f"no job has the name {name!r}{hint}")
    return 0


def _show_table(rows: Sequence[Row], now: datetime) -> None:
    if rows:
        table = job_table.render_lines(rows, terminal.width(), now, terminal.choose_paint())
        messages.show("".join(f"{line}\n" for line in table))


def _report_folded_jobs(rows: Sequence[Row], found: Sequence[StoredJob]) -> None:
    ids = {row.job.id for row in rows}
    if count := sum(job.allocation in ids for job in found):
        messages.write(f"jpsi: {count} more run in the allocations of these: --members shows them\n")


def _hidden_jobs(
    job_filter: JobFilter, view: ListView, jobs: Sequence[StoredJob], found: Sequence[StoredJob]
) -> Sequence[StoredJob]:
    """Return the jobs that `--all` lists besides those found, with what else the user typed."""
    listed = {job.id for job in found}
    every = attrs.evolve(job_filter, since=None).select(jobs, datetime.now(UTC))
    return [job for job in view.unfolded(every) if job.id not in listed]


def _report_hidden_jobs(hidden: Sequence[StoredJob]) -> None:
    if hidden:
        them = "it" if len(hidden) == 1 else "them"
        messages.write(f"jpsi: {len(hidden)} more ended over a day ago: --all shows {them}\n")


def _report_uncertain_ends(found: Sequence[StoredJob]) -> None:
    """Name what shows the ends of jobs of batch systems, which nothing on disk tells."""
    if any(job.may_have_ended and job.origin.machine is None for job in found):
        messages.write("jpsi: some of these may have ended: --refresh asks the batch system\n")


def _rows(
    found: Sequence[StoredJob],
    statuses: Mapping[str, jpsi.JobStatus],
    view: ListView,
    ids: Mapping[str, str],
) -> Sequence[Row]:
    """Return the rows of jobs; `ids` are those of jobs and arrays as shown."""
    ordered = view.ordered(view.unfolded(found))
    rows = [Row(job, best_status(job, statuses.get(job.id)), ids[job.id]) for job in ordered]
    return view.cut(rows if view.has_members else job_table.fold_arrays(rows, ids))


def _with_notes(rows: Sequence[Row], jobs: Sequence[StoredJob], ids: Mapping[str, str]) -> Sequence[Row]:
    """Return rows with what other jobs on disk say of theirs: vain waits, and repetitions of what failed."""
    single = [it for row in rows for it in row.members or [row]]
    waits = describe_vain_waits([it.job for it in single if it.status.state is jpsi.JobState.QUEUED], jobs)
    if waits:
        rows = [_with_vain_wait(row, waits) for row in rows]
    failed = [[it.job for it in row.members or [row] if has_failed(it.job)] for row in rows]
    if not any(failed):
        return rows
    repetitions = find_repetitions(jobs)
    texts = [describe_repetitions(it, repetitions, ids) for it in failed]
    return [attrs.evolve(row, repeated=it) if it else row for row, it in zip(rows, texts, strict=True)]


def _with_vain_wait(row: Row, waits: Mapping[str, str]) -> Row:
    members = [_with_vain_wait(it, waits) for it in row.members]
    return attrs.evolve(row, members=members, vain_wait=waits.get(row.job.id, ""))


def _ids(rows: Sequence[Row], jobs: Sequence[StoredJob]) -> Iterator[str]:
    """Yield the ids of the jobs in rows; in place of those of a whole array its own id."""
    sizes = Counter(job.array_id for job in jobs)
    for row in rows:
        array = row.job.array_id
        if array is not None and len(row.members) == sizes[array]:
            yield array
        else:
            yield from (it.job.id for it in row.members or [row])


def _watch(job_filter: JobFilter, view: ListView, *, is_refreshing: bool) -> int:
    """Show the jobs repeatedly, until Ctrl-C."""
    follow = _FollowedJobs() if is_refreshing else None
    messages.show(_ENTER)
    try:
        while True:
            started = time.monotonic()
            jobs = listed_jobs()
            now = datetime.now(UTC)
            found = job_filter.select(jobs, now)
            statuses = {} if follow is None else follow.statuses(found)
            ids = shown_ids(jobs)
            rows = _with_notes(_rows(found, statuses, view, ids), jobs, ids)
            messages.show(_screen(rows, now))
            elapsed = time.monotonic() - started
            time.sleep(max(_INTERVAL_SECONDS, elapsed / _MAX_SHARE))
    except KeyboardInterrupt:
        return 0
    finally:
        messages.show(_LEAVE)


class _FollowedJobs:
    """The jobs that this process follows while the user watches."""

    def __init__(self) -> None:
        self._jobs: dict[str, jpsi.Job | None] = {}

    def statuses(self, jobs: Sequence[StoredJob]) -> Mapping[str, jpsi.JobStatus]:
        # this process would submit those that wait for their next attempt
        live = [job for job in jobs if not job.status.final and not job.awaits_retry]
        new = [job for job in live if job.id not in self._jobs]
        self._jobs |= dict.fromkeys([job.id for job in new])
        self._jobs |= recall_jobs(new).jobs
        return {job_id: job.status for job_id, job in self._jobs.items() if job is not None}


# Escape sequences (ECMA-48): enter the alternate screen without a cursor, and leave it; go to its top; clear
# the rest of a line, or of the screen.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_TOP, _REST_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


def _screen(rows: Sequence[Row], now: datetime) -> str:
    width = terminal.width() or 80
    table = list(job_table.render_lines(rows, width, now, terminal.choose_paint()))
    # the newest jobs are shown if there are too many lines
    max_rows = max(1, terminal.height() - 3)
    shown = [*table[:1], *table[1:][-max_rows:]]
    counts = Counter(it.status.state for row in rows for it in row.members or [row])
    hidden = len(table) - len(shown)
    head = f"jpsi ls  {now.astimezone():%H:%M:%S}  {summarize_states(counts) or 'no jobs'}"
    head += f"  ({hidden} older not shown)" if hidden else ""
    lines = [head[:width], *shown]
    return _TOP + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines) + _REST
