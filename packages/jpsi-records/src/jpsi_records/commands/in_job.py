"""Implements the commands of `jpsi request` that also work inside the job of an execution.

There `submit`, `wait` and `progress` use the files of the job's inbox and load no database.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..errors import StateError
from ..inbox import Inbox, Report
from ..model import About, RequestSpec

#: The exit code if a request has ended otherwise than complete.
NOT_COMPLETE = 1
#: The exit code after a timeout, as of `jpsi run`.
TIMED_OUT = 124


def submit(  # noqa: PLR0913  options
    inbox: Inbox, spec: RequestSpec, about: About, *, priority: float, plan: str | None, is_strict: bool
) -> str:
    """Write a request to the inbox and return its id; the dispatcher takes it in later."""
    if is_strict:
        raise StateError("a job does not know where its requests will run: leave out --strict")
    if plan is not None:
        raise StateError("a job has no previews: leave out --plan")
    return inbox.submit(spec, about, priority=priority)


def wait(inbox: Inbox, requests: Sequence[str], *, timeout: float | None) -> int:
    """Wait until requests of this job have ended or are cancelled."""
    results = inbox.wait(*requests, timeout=timeout)
    if results is None:
        return TIMED_OUT
    for it in results:
        click.echo(f"request {it.request}: {it.outcome}{f': {it.why}' if it.why else ''}")
    return 0 if all(it.outcome == "complete" for it in results) else NOT_COMPLETE


def set_progress(inbox: Inbox, execution: str, value: float | None, report: Report) -> None:
    """Report progress, success or failure of this job."""
    if not execution or not inbox.execution.startswith(execution):
        msg = f"a job reports the progress of its own execution, {inbox.execution}, not of {execution}"
        raise StateError(msg)
    inbox.set_progress(value, report)
