"""Implements the commands of `jpsi request` that make requests, wait for them, and run the dispatcher."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import attrs
import click

from jpsi import ConfigError, JpsiError, PluginError, Reason

from .. import formatting
from ..errors import InvalidRequestError
from ..inbox import Inbox
from ..model import About, Execution, ExecutionState, Placement, Request, RequestSpec, RequestState, Reuse
from . import in_job
from .command import (
    ABOUT,
    CHANGES,
    EXECUTION,
    FILE,
    JSON,
    PLACEMENT,
    PRIORITY,
    REQUEST,
    STRICT,
    Output,
    command,
    read_expiry,
    read_labels,
)
from .in_job import NOT_COMPLETE, TIMED_OUT
from .interrupts import Interrupts
from .messages import (
    DispatcherMessage,
    JobMessages,
    PlacementMessage,
    describe_missing_dispatcher,
    describe_placement,
)
from .own_files import describe_own_files, describe_unseen_files

if TYPE_CHECKING:
    from ..dispatch import Dispatcher
    from ..records import Records

NOTHING_FOUND = 1
NO_EXIT_CODE = 125
# The same as that of `jpsi run`.
CANCELLED = 130
# The interval at which a command that does not dispatch checks the state of requests.
_POLL_SECONDS = 1.0
_INTERRUPTED = (
    "jpsi: interrupted; a job that was submitted runs on: `jpsi request dispatch` follows it, "
    "and `jpsi request cancel {request}` ends it"
)
# The signals that end a dispatcher, each in the same way.
_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RUN_CODES = """\
  1  the job has reported a failure, though its exit code is 0
  124  the job used up its time
  130  the request or its job was cancelled, or the command interrupted (then the job goes on)
Any other, and each of these as well, may be the exit code of the computation.
"""


@command(
    "Show how a request would be satisfied; nothing is written.",
    *(FILE, STRICT, JSON),
    done="it was shown",
    more="It names the execution; or else the job that would run, and the closest executions, at most three.",
)
def preview(records: Records, spec: RequestSpec, *, is_strict: bool) -> Output:
    """Return how a request would be satisfied."""
    plan = records.preview(spec)
    if is_strict and plan.warnings:
        raise InvalidRequestError.of(plan.warnings)
    _warn_of_own_files(records, spec)
    return Output(formatting.plan(plan), formatting.plan_json(plan))


@command(
    "Show which execution satisfies a request already; nothing is written.",
    *(FILE, JSON),
    done="there is one (1: there is none)",
)
def find(records: Records, spec: RequestSpec) -> Output:
    """Return which recorded execution satisfies a request."""
    plan = records.preview(attrs.evolve(spec, reuse=Reuse.ONLY))
    code = NOTHING_FOUND if plan.hit is None else 0
    return Output(formatting.plan(plan), formatting.plan_json(plan), code)


@command(
    "Make a request, and return at once.",
    *(FILE, *PLACEMENT, *ABOUT, PRIORITY, STRICT, JSON),
    click.Option(["--plan"], metavar="ID", help="Only if the result is that of this preview."),
    done="the request was made",
    more="In a job of a request, it writes a file, which the dispatcher of that job takes in.",
    is_for_jobs=True,
)
def submit(  # noqa: PLR0913  options
    records: Records | Inbox,
    spec: RequestSpec,
    about: About,
    *,
    priority: float,
    plan: str | None,
    is_strict: bool,
) -> Output | Request:
    """Create a request and commit it."""
    if isinstance(records, Inbox):
        child = in_job.submit(records, spec, about, priority=priority, plan=plan, is_strict=is_strict)
        document = json.dumps({"id": child, "parent": records.execution})
        return Output(f"{child}\n", f"{document}\n")
    _check_executor(records, spec)
    _warn(records, spec, is_strict=is_strict)
    _report_placement(records, spec)
    _warn_of_own_files(records, spec)
    return announced(records, records.submit(spec, about, priority=priority, plan=plan))


def announced(records: Records, request: Request) -> Request:
    """Print what users should know about a request that waits since now, and return it."""
    echo(PlacementMessage(records, request.id).update())
    if sys.stderr.isatty() and not _is_over(records, request.id) and not records.dispatchers():
        echo([describe_missing_dispatcher(records)])
    return request


def echo(sentences: Iterable[str]) -> None:
    """Print sentences to standard error, each as soon as it is known."""
    for it in sentences:
        click.echo(f"jpsi: {formatting.printable(it)}", err=True)


def _check_executor(records: Records, spec: RequestSpec) -> None:
    """Raise if the executor does not exist; that of another user's dispatcher cannot be checked."""
    if records.may_dispatch and spec.placement.executor is not None:
        from jpsi import JobExecutor  # noqa: PLC0415  most commands need none

        try:
            JobExecutor(spec.placement.executor).close()
        except (ConfigError, PluginError) as e:
            raise InvalidRequestError(f"placement: {e}", e) from e


def _warn(records: Records, spec: RequestSpec, *, is_strict: bool = False) -> None:
    """Print warnings about a new execution on this machine, or raise if the request is strict."""
    warnings = records.warnings(spec)
    # A request with predecessors cannot be previewed yet, so a new execution is assumed.
    if warnings and not spec.predecessors and not records.preview(spec).runs:
        return
    if is_strict and warnings:
        raise InvalidRequestError.of(warnings)
    for it in warnings:
        click.echo(f"jpsi: warning: {formatting.printable(it)}", err=True)


def _report_placement(records: Records, spec: RequestSpec) -> None:
    """Report what the executor of a new job changes or ignores; another user's is unknown."""
    if not records.may_dispatch or spec.placement == Placement(executor=spec.placement.executor):
        return
    # a request with predecessors cannot be previewed yet
    if spec.predecessors or records.preview(spec).runs:
        from jpsi import JobExecutor  # noqa: PLC0415  most commands need none

        # the dispatcher reports an executor that cannot be used
        with contextlib.suppress(JpsiError), JobExecutor(spec.placement.executor) as executor:
            echo(describe_placement(executor, spec.placement))


def _warn_of_own_files(records: Records, spec: RequestSpec) -> None:
    described = (
        describe_own_files(spec.computation, records.directory),
        describe_unseen_files(spec.computation, Path()),
    )
    echo(f"warning: {it}" for it in described if it is not None)


@command(
    "Make a request that is satisfied by the execution of your choice.",
    *(FILE, EXECUTION, *ABOUT, PRIORITY, JSON),
)
def attach(records: Records, spec: RequestSpec, execution: str, about: About, *, priority: float) -> Request:
    """Create a request for the named execution and commit it."""
    return announced(records, records.submit(spec, about, priority=priority, execution=execution))


@command("Compute exactly the same again.", EXECUTION, PRIORITY, JSON)
def rerun(records: Records, execution: str, *, priority: float) -> Request:
    """Submit a new run of what an execution has computed."""
    return announced(records, records.rerun(execution, priority=priority))


@command(
    "Make a draft: a request for which nothing runs until it is committed.",
    *(FILE, *ABOUT, JSON),
    done="the draft was made",
)
def draft(records: Records, spec: RequestSpec, about: About) -> Request:
    """Create a draft."""
    return records.draft(spec, about)


@command(
    "Change a draft; if it asks for another computation then, it loses its execution.",
    *(REQUEST, click.Argument(["file"], metavar="[FILE]", required=False), *CHANGES, JSON),
)
def update(  # noqa: PLR0913  options
    records: Records,
    request: str,
    spec: RequestSpec | None,
    *,
    name: str | None,
    labels: Sequence[str],
    expires: str | None,
) -> Request:
    """Change a draft."""
    before = records.request(request)
    about = About(
        name=before.name if name is None else name,
        description=before.description,
        labels=read_labels(labels) or before.labels,
        expires_at=read_expiry(expires) or before.expires_at,
        parent=before.parent,
    )
    return records.update(request, spec, about)


@command("Find an execution that satisfies a draft, or create one; nothing runs yet.", REQUEST, JSON)
def satisfy(records: Records, request: str) -> Request:
    """Assign a matching execution to a draft, or create one."""
    _warn(records, records.request(request).spec)
    return records.satisfy(request)


@command("Detach the execution of a draft.", REQUEST, JSON)
def reset(records: Records, request: str) -> Request:
    """Detach the execution of a draft."""
    return records.reset(request)


@command("Commit a draft: from now on it has an execution, which runs.", REQUEST, PRIORITY, JSON)
def commit(records: Records, request: str, *, priority: float) -> Request:
    """Commit a draft."""
    found = records.request(request)
    _check_executor(records, found.spec)
    if found.execution is None:
        _warn(records, found.spec)
    return announced(records, records.commit(request, priority=priority))


@command(
    "Make a request, wait for its end, and exit with its exit code.",
    *(FILE, *PLACEMENT, *ABOUT, PRIORITY, STRICT),
    click.Option(
        ["--json", "is_json"],
        is_flag=True,
        help="Write JSON at the end, and the job's output to standard error.",
    ),
    done="the computation has succeeded, now or earlier",
    codes=_RUN_CODES,
)
def run(  # noqa: PLR0913  options
    records: Records, spec: RequestSpec, about: About, *, priority: float, is_strict: bool, is_json: bool
) -> int:
    """Create a request, dispatch or wait until it ends, print the logs, and return the exit code."""
    interrupts = Interrupts()
    with interrupts.raised([signal.SIGINT]):
        _check_executor(records, spec)
        _warn(records, spec, is_strict=is_strict)
        _report_placement(records, spec)
        _warn_of_own_files(records, spec)
        request_id = records.submit(spec, about, priority=priority).id
    _await_end(records, request_id, interrupts)
    return _report_end(records, records.request(request_id), is_json=is_json)


def _await_end(records: Records, request_id: str, interrupts: Interrupts) -> None:
    """Dispatch, or wait for the dispatcher of another user, until a request is over."""
    placement_message, dispatcher_message = PlacementMessage(records, request_id), DispatcherMessage(records)
    try:
        with interrupts.raised([signal.SIGINT]):
            echo(placement_message.update())
            if records.may_dispatch:
                _dispatch_until(records, request_id, interrupts, placement_message)
            while not _is_over(records, request_id):
                interrupts.check()
                echo(placement_message.update())
                echo(dispatcher_message.update())
                sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        click.echo(_INTERRUPTED.format(request=request_id), err=True)
        raise


def _is_over(records: Records, request_id: str) -> bool:
    request = records.request(request_id)
    is_wanted = request.state is RequestState.COMMITTED and (request.priority or 0) > 0
    if is_wanted or request.execution is None:
        return not is_wanted
    # After a cancellation, the dispatcher goes on until it has cancelled the job.
    execution = records.execution(request.execution)
    return execution.state.ended or execution.state is ExecutionState.QUEUED or execution.priority > 0


def _report_end(records: Records, request: Request, *, is_json: bool) -> int:
    """Print the result of a request that is over, and return its exit code."""
    execution = None if request.execution is None else records.execution(request.execution)
    assigned = formatting.assignment(request, records.events(request=request.id))
    is_new = assigned is not None and bool(assigned.data.get("is_new"))
    if is_json:
        is_reused = execution is not None and not is_new
        document = {"request": request, "execution": execution, "is_reused": is_reused}
        click.echo(formatting.as_json(document), nl=False)
    is_cancelled = request.state is not RequestState.FINAL or request.outcome == "cancelled"
    if is_cancelled and (request.priority or 0) <= 0:
        click.echo(f"jpsi: {formatting.cancelled(request, execution)}", err=True)
        return CANCELLED
    if execution is None:
        why = formatting.printable(_refusal_of(records, request))
        click.echo(f"jpsi: request {request.id} has no execution: {why}", err=True)
        return NO_EXIT_CODE
    click.echo(f"jpsi: {formatting.result(request, execution, is_new=is_new)}", err=True)
    if "error" in execution.status:
        click.echo(f"jpsi: {formatting.printable_lines(execution.status['error'])}", err=True)
    _show_log(records, execution, is_json=is_json)
    if execution.reason == "cancelled":
        return CANCELLED
    if execution.reason == Reason.TIMEOUT.value:
        return TIMED_OUT
    if execution.exit_code is None:
        return int(execution.status.get("exit_code", NO_EXIT_CODE))
    # A reported failure counts as a failure even if the job's exit code is 0.
    is_reported_failure = execution.exit_code == 0 and request.outcome == "failed"
    return NOT_COMPLETE if is_reported_failure else execution.exit_code


def _refusal_of(records: Records, request: Request) -> str:
    reasons = (str(it.data["why"]) for it in records.events(request=request.id) if it.kind == "refused")
    return next(reasons, request.outcome or "")


def _show_log(records: Records, execution: Execution, *, is_json: bool) -> None:
    log = {} if execution.log is None else records.blobs.manifest(execution.log)
    for name in ("stdout", "stderr"):
        if name in log:
            content = records.blobs.path(log[name].digest).read_bytes()
            click.echo(content, nl=False, err=is_json or name == "stderr")


@command(
    "Wait until requests have ended; a dispatcher must run meanwhile.",
    click.Argument(["requests"], metavar="REQUEST...", nargs=-1, required=True),
    click.Option(["--timeout"], type=float, metavar="SECONDS", help="Wait no longer."),
    done="all are complete (1: not all, or one was cancelled; 124: the timeout is over)",
    more="In a job, it waits for requests that the job has made.",
    is_for_jobs=True,
)
def wait(records: Records | Inbox, requests: Sequence[str], *, timeout: float | None) -> int:
    """Wait until requests have ended. This runs nothing: a dispatcher must run in another process."""
    if isinstance(records, Inbox):
        return in_job.wait(records, requests, timeout=timeout)
    found = [records.request(it) for it in requests]
    end = None if timeout is None else monotonic() + timeout
    interrupts, dispatcher_message = Interrupts(), DispatcherMessage(records)
    with interrupts.raised([signal.SIGINT]):
        while not all(it.state.ends_a_wait for it in found):
            interrupts.check()
            if end is not None and monotonic() >= end:
                echo(dispatcher_message.update(is_last=True))
                left = [it for it in found if not it.state.ends_a_wait]
                echo(f"request {it.id} has not ended: it is {it.shown_state}" for it in left)
                return TIMED_OUT
            echo(dispatcher_message.update())
            sleep(_POLL_SECONDS)
            found = [records.request(it.id) for it in found]
    executions = records.executions([it.execution for it in found if it.execution is not None])
    for it in {it.id: it for it in found}.values():
        click.echo(formatting.outcome(it, executions.get(it.execution or "")))
    return 0 if {it.shown_state for it in found} == {"complete"} else NOT_COMPLETE


@command(
    "Run requested executions, until you interrupt it.",
    click.Option(["--until-idle"], is_flag=True, help="Return once nothing is left to run."),
    done="nothing is left to run",
    more="Whenever a dispatcher ends, or is killed, the next one finds its jobs.",
)
def dispatch(records: Records, *, until_idle: bool) -> int:
    """Run requested executions."""
    interrupts = Interrupts()

    def is_over() -> bool:
        interrupts.check()
        return False

    with dispatching(records, interrupts) as dispatcher:
        dispatcher.run(until_idle=until_idle, is_over=is_over)
    return 0


def _dispatch_until(
    records: Records, request_id: str, interrupts: Interrupts, placement_message: PlacementMessage
) -> None:
    is_printed = False
    messages = JobMessages(is_terminal=sys.stderr.isatty())

    def is_over_or_waits() -> bool:
        nonlocal is_printed
        interrupts.check()
        if _is_over(records, request_id):
            return True
        is_printed = is_printed or _print_holder(records, dispatcher, request_id)
        job = dispatcher.job_of(records.request(request_id).execution or "")
        echo(placement_message.update())
        echo(messages.update(job) if job is not None else ())
        return False

    if not _is_over(records, request_id):
        with dispatching(records, interrupts) as dispatcher:
            # The first round takes over executions that other dispatchers have left.
            dispatcher.step()
            dispatcher.run(is_over=is_over_or_waits)


def _print_holder(records: Records, dispatcher: Dispatcher, request_id: str) -> bool:
    execution = records.request(request_id).execution
    holder = None if execution is None else dispatcher.waits_for(execution)
    if holder is None:
        return False
    who = formatting.printable(holder)
    click.echo(f"jpsi: another dispatcher, {who}, runs execution {execution}: waiting", err=True)
    return True


@contextlib.contextmanager
def dispatching(records: Records, interrupts: Interrupts) -> Iterator[Dispatcher]:
    """Yield a dispatcher that is closed at the end, even after a signal."""
    from ..dispatch import Dispatcher  # noqa: PLC0415  a job must not load the database

    with interrupts.raised(_END), contextlib.closing(Dispatcher(records)) as dispatcher:
        yield dispatcher
