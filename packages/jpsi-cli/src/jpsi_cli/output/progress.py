"""Shows a progress bar of many jobs, with the number of jobs in each state.

`jpsi wait` shows it, and so does `jpsi.wait_all(jobs, progress=True)` of the library if this package is
installed.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jpsi import JobState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_NOTEBOOK_WIDTH = 100
_NOTEBOOK_SECONDS = 0.2


class ProgressBar:
    """A bar of the jobs that have ended, with the number of jobs in each state beside it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._states: dict[str, JobState] = {}
        self._counts: Counter[JobState] = Counter()

    def show(self, job_id: str, state: JobState) -> None:
        """Update the state of a job."""
        previous = self._states.get(job_id)
        if previous is state:
            return
        self._counts[state] += 1
        if previous is not None:
            self._counts[previous] -= 1
        self._states[job_id] = state
        ended = sum(count for state, count in self._counts.items() if state.final)
        self._progress.update(self._task, completed=ended, states=summarize_states(self._counts).lower())


def summarize_states(counts: Mapping[JobState, int]) -> str:
    """Return the number of jobs in each state.

    >>> summarize_states({JobState.ACTIVE: 2, JobState.FAILED: 1, JobState.QUEUED: 0})
    '2 ACTIVE, 1 FAILED'
    """
    return ", ".join(f"{counts[state]} {state}" for state in JobState if counts.get(state))


@contextlib.contextmanager
def progress_bar(jobs: int) -> Iterator[ProgressBar]:
    """Show a bar on standard error within the context, if that is a terminal, or in a notebook."""
    from rich.console import Console  # noqa: PLC0415  slow to import
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[states]}")
    progress = Progress(*columns, console=console, disable=not console.is_terminal)
    bar = ProgressBar(progress, progress.add_task("jobs", total=jobs, states=""))
    with _in_notebook(progress) if console.is_jupyter else progress:
        yield bar


@contextlib.contextmanager
def _in_notebook(progress: Progress) -> Iterator[None]:
    """Show a bar as text below the cell, since rich needs ipywidgets to redraw one there."""
    from rich.console import Console  # noqa: PLC0415  slow to import

    display = importlib.import_module("IPython.display").display  # a notebook has it
    plain = Console(file=io.StringIO(), width=_NOTEBOOK_WIDTH, color_system=None, force_jupyter=False)

    def text() -> dict[str, str]:
        with plain.capture() as capture:
            plain.print(progress.get_renderable())
        return {"text/plain": capture.get()}

    shown = display(text(), raw=True, display_id=True)
    ended = threading.Event()

    def refresh() -> None:
        while not ended.wait(_NOTEBOOK_SECONDS):
            shown.update(text(), raw=True)

    thread = threading.Thread(target=refresh, name="jpsi-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        shown.update(text(), raw=True)
