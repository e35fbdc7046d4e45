"""What the commands do in the job of an execution, which opens no records; each returns the exit code."""

from __future__ import annotations

import json

import click

from ..errors import StateError
from ..inbox import Inbox
from ..model import About
from ..reports import Report
from ..wish import Wish


def submit(  # noqa: PLR0913  options
    inbox: Inbox, wish: Wish, more: About, *, priority: float, plan: str | None, as_json: bool
) -> int:
    """Make a request, which is taken in a moment later."""
    if plan is not None:
        msg = "in a job nothing is known of previews: leave out --plan"
        raise StateError(msg)
    request = inbox.submit(wish, more, priority=priority)
    told = json.dumps({"id": request, "parent": inbox.execution}) if as_json else f"request {request}"
    click.echo(told)
    return 0


def progress(inbox: Inbox, execution: str, value: float | None, report: Report) -> int:
    """Say how much of the work is done, or that it succeeds or fails."""
    if execution != inbox.execution:
        msg = f"a job tells the progress of its own execution, {inbox.execution}, and not of {execution}"
        raise StateError(msg)
    inbox.set_progress(value, report)
    return 0
