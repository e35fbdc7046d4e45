"""Implements `jpsi top`: shows the user's jobs on the whole terminal, with their output, and cancels jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Literal

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

import jpsi
from jpsi_engine.job_store import Origin, StoredJob

from .. import messages
from ..error_boundary import SelectionError
from ..output import COLOURS, summarize_states
from ..stored_jobs import listed_jobs, short_ids
from .control import cancel_jobs
from .explain import render_explanation
from .job_table import Row, table_cells
from .ls import RECENT

# The seconds between two reads of the files of jobs.
_INTERVAL_SECONDS = 2.0
# The largest number of jobs that is shown, the newest ones: users do not look through more.
_MAX_JOBS = 1000
# How many bytes of the end of a file are shown.
_TAIL_BYTES = 16384

# Shown until the batch system has answered.
_QUERYING = "querying …"

View = Literal["output", "errors", "why"]


def filter_jobs(jobs: Sequence[StoredJob], text: str, *, is_all: bool, now: datetime) -> list[StoredJob]:
    """Return the jobs with every word in their name, ids, state or executor, the newest first."""
    words = text.lower().split()
    found = [
        job
        for job in jobs
        if (is_all or not job.status.final or now - job.status.time <= RECENT)
        and all(word in _searchable_text(job) for word in words)
    ]
    return found[::-1][:_MAX_JOBS]


def _searchable_text(job: StoredJob) -> str:
    words = (job.id, job.native_id or "", job.name or "", job.status.state.value, job.origin.name)
    return " ".join(words).lower()


class Question(ModalScreen[bool]):
    """A question that the user must answer with yes before an action."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]
    DEFAULT_CSS = """
    Question { align: center middle; }
    Question Vertical { width: 60; height: auto; border: thick red; }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the question; textual calls this."""
        with Vertical():
            yield Static(Text(f"{self._text}\n\n[y] yes   [n] no"))

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001  textual's
        """Close the question with the answer."""
        self.dismiss(answer)


class Top(App[None]):
    """The screen: a list of jobs, and below it the output of the selected one.

    Args:
        read: returns the jobs.
    """

    TITLE = "jpsi top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #counts { height: 1; text-style: bold; }
    #filter { display: none; }
    #jobs { height: 2fr; }
    #about { height: 1; background: $panel; }
    #pane { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "unfilter", "No filter", show=False),
        Binding("a", "all", "All or recent"),
        Binding("o", "view('output')", "Output"),
        Binding("e", "view('errors')", "Errors"),
        Binding("w", "view('why')", "Why?"),
        Binding("c", "cancel", "Cancel"),
    ]

    def __init__(self, read: Callable[[], Sequence[StoredJob]] = listed_jobs) -> None:
        super().__init__()
        self._read = read
        self._all_jobs: Sequence[StoredJob] = ()
        self._visible_jobs: dict[str, StoredJob] = {}
        self._view: View = "output"
        self._is_all = False
        self._files: dict[Origin, jpsi.JobFiles] = {}
        self._pending_reads: set[tuple[str, View]] = set()
        #: The explanations of jobs by id, or `_QUERYING`.
        self._explanations: dict[str, str] = {}
        self._is_reading = False
        self._is_outdated = False

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen; textual calls this."""
        yield Static(id="counts")
        yield Input(placeholder="words of a name, an id, a state or an executor", id="filter")
        yield DataTable[Text](id="jobs", cursor_type="row")
        yield Static(id="about")
        yield Static(id="pane")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read the jobs; textual calls this."""
        self._table.focus()
        self.set_interval(_INTERVAL_SECONDS, self._reload_if_idle)
        self.reload()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#jobs", DataTable)

    def reload(self) -> None:
        """Read the jobs on disk; if a read is going on, read them again after it."""
        self._is_outdated = True
        self._reload_if_idle()

    def _reload_if_idle(self) -> None:
        # a read may take longer than the interval, and must not replace the result of a later one
        if not self._is_reading:
            self._is_reading, self._is_outdated = True, False
            self._read_jobs()

    @work(thread=True, group="reading")
    def _read_jobs(self) -> None:
        jobs, error = None, ""
        try:
            jobs = self._read()
        except jpsi.JpsiError as e:
            error = str(e)
        self.call_from_thread(self._end_read, jobs, error)

    def _end_read(self, jobs: Sequence[StoredJob] | None, error: str) -> None:
        self._is_reading = False
        if jobs is None:
            self.notify(error, severity="error", markup=False)
        else:
            self._all_jobs = jobs
            self._fill_table()
        if self._is_outdated:
            self._reload_if_idle()

    def _fill_table(self) -> None:
        """Fill the table, and leave the cursor on the same job."""
        now, table, before = datetime.now(UTC), self._table, self._selected
        text = self.query_one("#filter", Input).value
        found = filter_jobs(self._all_jobs, text, is_all=self._is_all, now=now)
        ids = short_ids(job.id for job in self._all_jobs)
        rows = [Row(job, job.status, ids[job.id]) for job in found]
        table.clear(columns=True)
        headings, lines = table_cells(rows, now)
        table.add_columns(*headings)
        for row, line in zip(rows, lines, strict=True):
            style = COLOURS.get(row.status.state, "")
            table.add_row(
                *(Text(it, style if it == row.status.state.value else "") for it in line), key=row.job.id
            )
        self._visible_jobs = {job.id: job for job in found}
        if before is not None and before.id in self._visible_jobs:
            table.move_cursor(row=list(self._visible_jobs).index(before.id), animate=False)
        counts = Counter(job.status.state for job in found)
        self.query_one("#counts", Static).update(
            f"{summarize_states(counts) or 'no jobs'}  {now.astimezone():%H:%M:%S}"
        )
        self._show_selected()

    @property
    def _selected(self) -> StoredJob | None:
        """The job under the cursor."""
        jobs, row = list(self._visible_jobs.values()), self._table.cursor_row
        return jobs[row] if 0 <= row < len(jobs) else None

    def on_data_table_row_highlighted(self) -> None:
        """Show the job under the cursor; textual calls this."""
        self._show_selected()

    def _show_selected(self) -> None:
        """Show the selected view of the selected job."""
        job, about, pane = self._selected, self.query_one("#about", Static), self.query_one("#pane", Static)
        about.update(Text("" if job is None else f"{self._view} of {job.name or job.id}"))
        if job is None:
            pane.update("")
        elif self._view == "why":
            # no query for each job that the cursor passes
            pane.update(Text(self._explanations.get(job.id, "press w to query the reason")))
        else:
            request = (job.id, self._view)
            if request not in self._pending_reads:
                self._pending_reads.add(request)
                self._read_end(job, self._view, max(1, pane.size.height))

    @work(thread=True, group="output")
    def _read_end(self, job: StoredJob, view: View, lines: int) -> None:
        """Show the end of a job's output, which may be on a remote host."""
        try:
            files = self._files.get(job.origin) or job.origin.files()
            self._files[job.origin] = files
            text = tail(job.output("stdout" if view == "output" else "stderr", files), lines)
        except jpsi.JpsiError as e:
            text = str(e)

        def show() -> None:
            self._pending_reads.discard((job.id, view))
            selected = self._selected
            if selected is not None and (selected.id, self._view) == (job.id, view):
                self.query_one("#pane", Static).update(Text(text))

        self.call_from_thread(show)

    def action_view(self, view: View) -> None:
        """Show the output, the errors, or the reason of the job's state."""
        self._view = view
        job = self._selected
        if view == "why" and job is not None and self._explanations.get(job.id) != _QUERYING:
            self._explanations[job.id] = _QUERYING
            self._explain(job)
        self._show_selected()

    @work(thread=True, group="explaining")
    def _explain(self, job: StoredJob) -> None:
        try:
            text = render_explanation(job)
        except (jpsi.JpsiError, SelectionError) as e:
            text = str(e)

        def show() -> None:
            self._explanations[job.id] = messages.printable(text)
            self._show_selected()

        self.call_from_thread(show)

    def action_filter(self) -> None:
        """Show the field for filter words."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_unfilter(self) -> None:
        """Remove the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self._table.focus()

    def on_input_changed(self) -> None:
        """Apply the filter words that were typed; textual calls this."""
        self._fill_table()

    def on_input_submitted(self) -> None:
        """Return to the table; textual calls this."""
        self._table.focus()

    def action_all(self) -> None:
        """Show jobs that ended long ago, or hide them again."""
        self._is_all = not self._is_all
        self._fill_table()

    def action_cancel(self) -> None:
        """Cancel the selected job, after the user has confirmed it."""
        job = self._selected
        if job is None or job.status.final:
            self.notify("there is no selected job that could be cancelled")
            return

        def on_answer(is_confirmed: bool | None) -> None:  # noqa: FBT001  textual's
            if is_confirmed:
                self._cancel(job)

        self.push_screen(Question(f"Cancel {job.name or 'job'} ({job.native_id or job.id})?"), on_answer)

    @work(thread=True, group="cancelling")
    def _cancel(self, job: StoredJob) -> None:
        _, failures = cancel_jobs([job])
        for error in failures.values():
            self.call_from_thread(self.notify, str(error), severity="error", markup=False)
        self.call_from_thread(self.reload)


def tail(output: jpsi.Output, lines: int) -> str:
    """Return the last lines of a job's output; control characters are shown as escapes."""
    try:
        part = output.read(-_TAIL_BYTES, _TAIL_BYTES)
    except jpsi.JpsiError as e:
        return str(e)
    if part is None:
        return "nothing was written yet"
    text = part.data.decode(errors="replace")
    return "\n".join(map(messages.printable, text.splitlines()[-lines:]))


def top() -> int:
    """Show the screen until the user leaves it; return the exit code."""
    Top().run()
    return 0
