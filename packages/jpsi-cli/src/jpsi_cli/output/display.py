"""How the states of a job are told: to a person, to a program, or hardly at all. Nothing is written here."""

from __future__ import annotations

import json
import os
import sys
from typing import Literal, Protocol

import jpsi

from .. import messages
from . import outcome


class Display(Protocol):
    """Finds the words for what becomes of one job."""

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """What to write when the job entered a state: whole lines, or nothing."""

    def waiting(self, status: jpsi.JobStatus, /) -> str:
        """What to write while the job is in a state: whole lines, or nothing if there is no news."""

    def cancelling(self) -> str:
        """What to write when Ctrl-C had us cancel the job."""


def choose_display(*, as_json: bool) -> Display:
    """Return the display for what standard error is."""
    if as_json:
        return JsonLines()
    return Terminal() if os.isatty(messages.STDERR) else Quiet()


class Quiet:
    """For scripts: nothing but an explanation where the exit code alone does not say enough."""

    def __init__(self) -> None:
        self._is_cancelling = False

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """Explain an end that is neither success nor what the executable itself chose."""
        if status.state is jpsi.JobState.FAILED and status.reason is not jpsi.Reason.EXIT_CODE:
            return f"jpsi: job failed: {messages.printable(outcome.why(job, status))}\n"
        if status.state is jpsi.JobState.CANCELED and not self._is_cancelling:
            return f"jpsi: job cancelled: {messages.printable(outcome.why(job, status))}\n"
        besides = messages.printable("; ".join(outcome.besides(status)))
        return f"jpsi: warning: {besides}\n" if besides else ""

    def waiting(self, _: jpsi.JobStatus) -> str:
        """Nothing: whoever calls it waits anyhow."""
        return ""

    def cancelling(self) -> str:
        """Whoever wanted it knows."""
        self._is_cancelling = True
        return ""


class JsonLines:
    """For programs: each status as a JSON object on a line of its own."""

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """The status, and whose it is."""
        executor = job.executor
        content = {
            "job_id": job.id,
            "native_id": job.native_id,
            "executor": None if executor is None else executor.name,
            "state": status.state.value,
            "time": status.time.isoformat(),
            "exit_code": status.exit_code,
            "message": status.message,
            "reason": None if status.reason is None else status.reason.value,
            "evidence": None if status.evidence is None else status.evidence.value,
            "metadata": dict(status.metadata),
        }
        return json.dumps(content, default=str) + "\n"

    def waiting(self, _: jpsi.JobStatus) -> str:
        """Nothing: there is one line for each state."""
        return ""

    def cancelling(self) -> str:
        """The status will tell."""
        return ""


class Terminal:
    """For people: a line for each state."""

    def __init__(self) -> None:
        # Scripts, which have no terminal, do not wait for rich to be imported.
        from rich.console import Console  # noqa: PLC0415

        # https://no-color.org is about colour; who sets it wants no other decoration either.
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(file=sys.stderr, color_system=colours, highlight=False)
        self._active: jpsi.JobStatus | None = None
        self._native_id_is_shown = False
        self._message: str | None = None

    def status(self, job: jpsi.Job, status: jpsi.JobStatus) -> str:
        """The state, and what is worth knowing about it."""
        match status.state:
            case jpsi.JobState.QUEUED:
                detail = self._queued(job)
            case jpsi.JobState.ACTIVE:
                self._active = status
                is_news = job.native_id is not None and not self._native_id_is_shown
                detail = f"native id {job.native_id}" if is_news else ""
            case _:
                detail = self._final(job, status)
        return self._line(status.state.value, COLOURS.get(status.state), detail)

    def waiting(self, status: jpsi.JobStatus) -> str:
        """Why the job waits, whenever that is something else."""
        if status.state is not jpsi.JobState.QUEUED or status.message in {None, self._message}:
            return ""
        self._message = status.message
        return self._line(status.state.value, COLOURS[status.state], status.message or "")

    def _queued(self, job: jpsi.Job) -> str:
        """Where the job is, and by which ids: the one that is shorter, if there is no room for both."""
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
        seconds = outcome.lasted(self._active, status)
        after = f"after {seconds}" if seconds else ""
        besides = outcome.besides(status)
        if status.state is jpsi.JobState.COMPLETED:
            return "; ".join(filter(None, [after, *besides]))
        why = outcome.why(job, status)
        reason = "; ".join([why, *(it for it in besides if it not in why)])
        return f"{reason} ({after})" if after else reason

    def cancelling(self) -> str:
        """Say that Ctrl-C was understood, below the terminal's `^C`."""
        how = "press Ctrl-C again to leave without waiting for the end"
        return "\n" + self._line("cancelling", "yellow", how)

    def _line(self, word: str, colour: str | None, detail: str) -> str:
        from rich.text import Text  # noqa: PLC0415  the console has imported it

        line = Text.assemble("jpsi: ", (f"{word:<10}", colour or ""), f" {messages.printable(detail)}")
        line.rstrip()
        with self._console.capture() as captured:
            self._console.print(line, soft_wrap=True)
        return captured.get()


_DETAIL_COLUMN = len("jpsi: COMPLETED  ")
#: What the states look like, in every command.
COLOURS = {
    jpsi.JobState.QUEUED: "yellow",
    jpsi.JobState.ACTIVE: "blue",
    jpsi.JobState.COMPLETED: "green",
    jpsi.JobState.FAILED: "red",
    jpsi.JobState.CANCELED: "magenta",
}
