"""Implements the commands of `jpsi request` that show and change records, collections and the database."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import formatting
from ..errors import AmbiguousError, InvalidRequestError, NotFoundError, store_errors
from ..inbox import Inbox, Report
from ..model import DIGEST, Execution, Request
from . import in_job
from .command import EXECUTION, JSON, REQUEST, Output, command

if TYPE_CHECKING:
    from ..records import Records


# What the column STATE shows.
_STATES = ["draft", "committed", "complete", "failed", "cancelled", "expired", "dependency_failed", "refused"]


@command(
    "List your requests.",
    click.Option(["--all", "is_all"], is_flag=True, help="List the requests of all users."),
    click.Option(
        ["--state"],
        type=click.Choice([*_STATES, "final"]),
        help="List only those in this state; final: those that have ended in any way.",
    ),
    JSON,
    when_empty=lambda: Output(formatting.requests([], {}, ()), formatting.as_json([])),
)
def ls(records: Records, *, is_all: bool, state: str | None) -> Output:
    """Return the requests."""
    found = records.requests(owner=None if is_all else records.user)
    if state is not None:
        found = [it for it in found if state in {it.state.value, it.shown_state}]
    executions = records.executions([it.execution for it in found if it.execution is not None])
    new = {it for it, event in records.assignments().items() if event.data.get("is_new")}
    computed = {it.id for it in found if (it.id, str(it.execution)) in new}
    # a program that reads the table gets all of it
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return Output(formatting.requests(found, executions, computed, width), formatting.as_json(found))


def _find(records: Records, subject: str) -> tuple[Request | None, Execution | None]:
    """Return the request with an id and its execution, or the execution with that id."""
    request: Request | None
    try:
        request = records.request(subject)
    except AmbiguousError:
        raise
    except NotFoundError:
        request = None
    if request is None:
        try:
            return None, records.execution(subject)
        except NotFoundError as e:
            msg = f"no request or execution has the id {subject}; jpsi request ls shows the requests"
            raise NotFoundError(msg) from e
    return request, None if request.execution is None else records.execution(request.execution)


def _execution(records: Records, subject: str) -> Execution:
    """Return the execution with an id, or that of the request with it."""
    request, execution = _find(records, subject)
    if execution is None:
        state = "" if request is None else f"{request.shown_state}"
        raise NotFoundError(f"request {subject} has no execution: it is {state}")
    return execution


@command(
    "Show the output of the job of a request or an execution.",
    click.Argument(["subject"], metavar="ID"),
    click.Option(["--stderr", "is_stderr"], is_flag=True, help="Show standard error."),
)
def logs(records: Records, subject: str, *, is_stderr: bool) -> int:
    """Write the output of the last attempt."""
    from ..records import read_log  # noqa: PLC0415  a job must not load the database

    execution = _execution(records, subject)
    attempts = records.attempts(execution.id)
    if not attempts:
        raise NotFoundError(f"execution {execution.id} has not begun: it is {formatting.state(execution)}")
    content, _ = read_log(records, execution, attempts[-1], "stderr" if is_stderr else "stdout")
    click.echo(content, nl=False)
    return 0


@command("Show everything about a request or an execution.", click.Argument(["subject"], metavar="ID"), JSON)
def show(records: Records, subject: str) -> Output:
    """Return everything about a request or an execution."""
    request, execution = _find(records, subject)
    attempts = [] if execution is None else records.attempts(execution.id)
    found = [] if request is None else records.events(request=request.id)
    found += [] if execution is None else records.events(execution=execution.id)
    events = sorted({it.seq: it for it in found}.values(), key=lambda it: it.seq)
    document = {"request": request, "execution": execution, "attempts": attempts, "events": events}
    return Output(formatting.details(request, execution, attempts, events), formatting.as_json(document))


@command("Show why a request has its execution.", REQUEST)
def explain(records: Records, request: str) -> Output:
    """Return why a request has its execution."""
    found = records.request(request)
    text = formatting.explanation(found, records.events(request=found.id), records.passed_over(found.id))
    return Output(text)


@command(
    "List when requests waited and ran, for which user and with which priority.",
    click.Option(["--execution"], metavar="ID", help="Of one execution."),
    click.Option(["--user"], metavar="NAME", help="Of one user."),
    JSON,
)
def usage(records: Records, execution: str | None, user: str | None) -> Output:
    """Return the accounting intervals."""
    wanted = None if execution is None else records.execution(execution).id
    found = records.usage(execution=wanted, user=user)
    return Output(formatting.usage(found), formatting.as_json(found))


@command(
    "Exclude an execution from reuse: no further request gets its result.",
    EXECUTION,
    click.Option(["--why"], default="", help="The reason, for the history."),
)
def invalidate(records: Records, execution: str, why: str) -> Output:
    """Exclude an execution from reuse by any further request."""
    found = records.invalidate(execution, why)
    return Output(f"execution {found.id} satisfies no request any more\n")


@command(
    "Report the progress of a running execution, from 0 to 1, or its success or failure.",
    EXECUTION,
    click.Argument(["value"], type=click.FloatRange(0, 1), required=False),
    click.Option(["--success", "is_success"], is_flag=True, help="Report success."),
    click.Option(["--failure"], metavar="WHY", help="Report a failure, which counts for any exit code."),
    more="In a job of a request, EXECUTION is $JPSI_EXECUTION.",
    is_for_jobs=True,
)
def progress(
    records: Records | Inbox, execution: str, value: float | None, *, is_success: bool, failure: str | None
) -> int:
    """Record the progress of an execution, or a report of success or failure."""
    if (value is None and not is_success and failure is None) or (is_success and failure is not None):
        msg = "say a number from 0 to 1, and one of --success and --failure, or one of these"
        raise InvalidRequestError(msg)
    if value is not None and not 0 <= value <= 1:
        raise InvalidRequestError(f"progress is a number from 0 to 1, not {value}")
    report = Report(None if failure is None and not is_success else is_success, failure or "")
    if isinstance(records, Inbox):
        in_job.set_progress(records, execution, value, report)
    else:
        records.set_progress(execution, value, report)
    return 0


@command(
    "Store a file or directory as a collection, and print its digest.",
    click.Argument(["path"], metavar="PATH"),
    click.Option(["--name"], help="A name that stands for this collection from now on."),
)
def put(records: Records, path: str, name: str | None) -> Output:
    """Store a file or directory as a collection."""
    captured = records.put(path, name)
    for it in captured.left_out:
        click.echo(f"jpsi: warning: left out: {formatting.printable(it)}", err=True)
    return Output(f"{captured.digest}\n")


@command(
    "Write the output of a request or an execution, or another collection, into a directory.",
    click.Argument(["subject"], metavar="ID|NAME|DIGEST"),
    click.Argument(["target"], metavar="DIRECTORY"),
)
def get(records: Records, subject: str, target: str) -> int:
    """Write a collection to a directory."""
    named = subject if DIGEST.fullmatch(subject) else records.collection(subject)
    digest = named or _output(_execution(records, subject))
    with store_errors(f"{target} cannot be written", InvalidRequestError):
        if os.path.lexists(target) and os.listdir(target):  # noqa: PTH208  its error is the user's
            raise InvalidRequestError(f"{target} is not empty: name a directory that is new or empty")
        Path(target).mkdir(parents=True, exist_ok=True)
    with store_errors(f"{target} cannot be written"):
        records.blobs.lay_out(digest, Path(target), is_writable=True)
    return 0


def _output(execution: Execution) -> str:
    if execution.output is None:
        why = f"execution {execution.id} has no output: it is {formatting.state(execution)}"
        logs = f"`jpsi request logs {execution.id}` has what it printed"
        hint = f"; `output_path` names what is kept, and {logs}" if execution.state.ended else ""
        raise NotFoundError(f"{why}{hint}")
    return execution.output


@command("Rebuild a lost database from the copies beside the files of jobs.", name="reindex")
def restore(records: Records) -> Output:
    """Restore records from the copies beside the files of jobs."""
    from ..records import reindex  # noqa: PLC0415  a job must not load the database

    found = reindex(records)
    for it in found.unreadable:
        click.echo(f"jpsi: warning: {formatting.printable(it)}", err=True)
    rebuilt = f"{found.executions} executions, {found.requests} requests and {found.names} names"
    return Output(f"{rebuilt} were rebuilt\n")


@command(
    "Show requests and executions in your browser, until you interrupt it.",
    click.Option(
        ["--port"],
        type=click.IntRange(0, 65535),
        default=0,
        help="The port on this machine.  [default: any that is free]",
    ),
    done="it was interrupted",
    more="It prints a link. Every user of this machine who has the link can see your records.",
)
def serve(records: Records, *, port: int) -> int:
    """Serve the records as web pages until interrupted."""
    from ..web import Server  # noqa: PLC0415  the other commands need no server

    with Server(records, port) as server:
        click.echo(server.link)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
