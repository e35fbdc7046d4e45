"""Displays the states of a job, for `jpsi run` and `attach`: to people, to programs, or quietly in scripts.

A display only returns text; the caller writes it to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Literal

import jpsi

from .. import messages
from . import outcome
from .wait_reasons import WaitReasons, with_advice


class Display:
    """A display: returns the text to write about one job; by default nothing but the states."""

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """Return the text for a new state of the job: whole lines, or nothing."""
        raise NotImplementedError

    def waiting(self, _: jpsi.JobStatus) -> str:
        """Return the text while the job stays in a state: whole lines, or nothing if nothing has changed."""
        return ""

    def cancelling(self) -> str:
        """Return the text when Ctrl-C makes jpsi cancel the job."""
        return ""


def choose_display(*, as_json: bool) -> Display:
    """Return the display that suits standard error."""
    if as_json:
        return JsonLines()
    return Terminal() if os.isatty(messages.STDERR) else Quiet()


class Quiet(Display):
    """A display for scripts: writes only if the exit code alone does not say enough."""

    def __init__(self) -> None:
        self._is_cancelling = False
        self._reasons = WaitReasons()

    def waiting(self, status: jpsi.JobStatus) -> str:
        """Return why the job waits, once it has waited for some seconds, and what would have to change."""
        new = self._reasons.check([("", status)])
        return "".join(f"jpsi: the job waits: {messages.printable(with_advice(it))}\n" for it in new)

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """Explain an end that is neither a success nor an exit code of the executable."""
        is_failure = status.state is jpsi.JobState.FAILED and status.reason is not jpsi.Reason.EXIT_CODE
        if is_failure or (status.state is jpsi.JobState.CANCELED and not self._is_cancelling):
            end = "failed" if is_failure else "cancelled"
            return f"jpsi: job {end}: {messages.printable(outcome.explain_end(job, status))}\n"
        later_failures = messages.printable("; ".join(outcome.later_failures(status)))
        return f"jpsi: warning: {later_failures}\n" if later_failures else ""

    def cancelling(self) -> str:
        """Return nothing: the sender of the signal knows."""
        self._is_cancelling = True
        return ""


class JsonLines(Display):
    """A display for programs: each status as a JSON object on a line of its own."""

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """Return the status with the ids of its job."""
        executor = None if job.executor is None else job.executor.name
        ids = {"job_id": job.id, "native_id": job.native_id, "executor": executor}
        content = {**ids, **outcome.status_json(status)}
        return json.dumps(content, default=str) + "\n"


class Terminal(Display):
    """A display for people: a line for each state."""

    def __init__(self) -> None:
        # Scripts, which have no terminal, do not wait for the import of rich.
        from rich.console import Console  # noqa: PLC0415

        # https://no-color.org is about colour; its users want no other decoration either.
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(file=sys.stderr, color_system=colours, highlight=False)
        self._active: jpsi.JobStatus | None = None
        self._native_id_is_shown = False
        self._reasons = WaitReasons(checks_before=1)

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """Return the state and its details."""
        match status.state:
            case jpsi.JobState.QUEUED:
                detail = self._queued(job)
            case jpsi.JobState.ACTIVE:
                self._active = status
                is_new = job.native_id is not None and not self._native_id_is_shown
                detail = f"native id {job.native_id}" if is_new else ""
            case _:
                detail = self._final(job, status)
        return self._line(status.state.value, COLOURS.get(status.state), detail)

    def waiting(self, status: jpsi.JobStatus) -> str:
        """Return why the job waits, if that is new."""
        new = self._reasons.check([("", status)])
        return "".join(self._line(status.state.value, COLOURS[status.state], with_advice(it)) for it in new)

    def _queued(self, job: jpsi.Job) -> str:
        """Return the executor and the ids of the job: only the shorter id if there is no room for both."""
        where = "" if job.executor is None else f" on {job.executor.name}"
        if job.native_id is None:
            return f"job {job.id}{where}"
        native = f"native id {job.native_id}{where}"
        both = f"{native}, job {job.id}"
        has_room = len(both) <= self._console.width - _DETAIL_COLUMN
        self._native_id_is_shown = has_room or len(job.native_id) < len(job.id)
        if has_room:
            return both
        return native if self._native_id_is_shown else f"job {job.id}{where}"

    def _final(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        seconds = outcome.format_runtime(self._active, status)
        after = f"after {seconds}" if seconds else ""
        failures = outcome.later_failures(status)
        if status.state is jpsi.JobState.COMPLETED:
            return "; ".join(filter(None, [after, *failures]))
        reason = outcome.explain_end(job, status)
        reason = "; ".join([reason, *(it for it in failures if it not in reason)])
        return f"{reason} ({after})" if after else reason

    def cancelling(self) -> str:
        """Confirm Ctrl-C, on the line below the terminal's `^C`."""
        how = "press Ctrl-C again to exit without waiting for the end"
        return "\n" + self._line("cancelling:", "yellow", how)

    def _line(self, word: str, colour: str | None, detail: str) -> str:
        from rich.text import Text  # noqa: PLC0415  the console has imported it

        line = Text.assemble("jpsi: ", (f"{word:<10}", colour or ""), f" {messages.printable(detail)}")
        line.rstrip()
        with self._console.capture() as captured:
            self._console.print(line, soft_wrap=True)
        return captured.get()


_DETAIL_COLUMN = len("jpsi: COMPLETED  ")
#: The colours of states, in every command.
COLOURS = {
    jpsi.JobState.QUEUED: "yellow",
    jpsi.JobState.ACTIVE: "blue",
    jpsi.JobState.COMPLETED: "green",
    jpsi.JobState.FAILED: "red",
    jpsi.JobState.CANCELED: "magenta",
}
