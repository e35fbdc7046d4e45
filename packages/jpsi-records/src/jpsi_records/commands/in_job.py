"""The commands inside the job of an execution, which opens no records; each returns the exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from ..errors import StateError
from ..inbox import Inbox, Report
from ..model import About, RequestSpec

NOT_COMPLETE = 1
# The same as that of `jpsi run`.
TIMED_OUT = 124


def submit(  # noqa: PLR0913  options
    inbox: Inbox,
    spec: RequestSpec,
    more: About,
    *,
    priority: float,
    plan: str | None,
    is_strict: bool,
    as_json: bool,
) -> int:
    """Write a request to the inbox; the dispatcher takes it in later."""
    if is_strict:
        msg = "in a job nothing is known of where its requests will run: leave out --strict"
        raise StateError(msg)
    if plan is not None:
        msg = "in a job nothing is known of previews: leave out --plan"
        raise StateError(msg)
    request = inbox.submit(spec, more, priority=priority)
    text = json.dumps({"id": request, "parent": inbox.execution}) if as_json else f"request {request}"
    click.echo(text)
    return 0


def wait(inbox: Inbox, requests: Sequence[str], *, timeout: float | None) -> int:
    """Wait until requests of this job have ended."""
    found = inbox.wait(*requests, timeout=timeout)
    if found is None:
        return TIMED_OUT
    for it in found:
        click.echo(f"request {it.request}: {it.outcome}{f': {it.why}' if it.why else ''}")
    return 0 if all(it.outcome == "complete" for it in found) else NOT_COMPLETE


def progress(inbox: Inbox, execution: str, value: float | None, report: Report) -> int:
    """Report progress, success or failure of this job."""
    if not execution or not inbox.execution.startswith(execution):
        msg = f"a job tells the progress of its own execution, {inbox.execution}, and not of {execution}"
        raise StateError(msg)
    inbox.set_progress(value, report)
    return 0
