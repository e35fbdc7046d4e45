"""The actions of the commands on the records; each returns the exit code."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep

import attrs
import click

from jpsi import ConfigError, JobExecutor, PluginError

from .. import formatting
from ..dispatch import Dispatcher
from ..errors import AmbiguousError, InvalidRequestError, NotFoundError
from ..inbox import Report
from ..model import About, Execution, ExecutionState, Request, RequestSpec, RequestState, Reuse
from ..records import Records, reindex
from .in_job import NOT_COMPLETE, TIMED_OUT

NOTHING_FOUND = 1
NO_EXIT_CODE = 125
# The same as that of `jpsi run`.
CANCELLED = 130
# The interval at which a command that does not dispatch checks the state of requests.
_POLL_SECONDS = 1.0
# The signals that end a dispatcher in the same way as Ctrl-C.
_END = (signal.SIGTERM, signal.SIGHUP)


def preview(records: Records, spec: RequestSpec, *, is_strict: bool, as_json: bool) -> int:
    """Print how a request would be satisfied."""
    found = records.preview(spec)
    if is_strict and found.warnings:
        raise InvalidRequestError.of(found.warnings)
    _show(formatting.plan_json(found) if as_json else formatting.plan(found))
    return 0


def find(records: Records, spec: RequestSpec, *, as_json: bool) -> int:
    """Print which recorded execution satisfies a request."""
    found = records.preview(attrs.evolve(spec, reuse=Reuse.ONLY))
    _show(formatting.plan_json(found) if as_json else formatting.plan(found))
    return 0 if found.hit is not None else NOTHING_FOUND


def submit(  # noqa: PLR0913  options
    records: Records,
    spec: RequestSpec,
    more: About,
    *,
    priority: float,
    plan: str | None,
    is_strict: bool,
    as_json: bool,
) -> int:
    """Create a request and commit it."""
    _check_executor(records, spec)
    _warn(records, spec, is_strict=is_strict)
    return _print_request(records, records.submit(spec, more, priority=priority, plan=plan), as_json=as_json)


def _check_executor(records: Records, spec: RequestSpec) -> None:
    """Raise if the executor does not exist; that of another user's dispatcher cannot be checked."""
    if records.may_dispatch and spec.placement.executor is not None:
        try:
            JobExecutor(spec.placement.executor).close()
        except (ConfigError, PluginError) as e:
            msg = f"placement: {e}"
            raise InvalidRequestError(msg, e) from e


def _warn(records: Records, spec: RequestSpec, *, is_strict: bool = False) -> None:
    """Print warnings about a new execution on this machine, or raise if the request is strict."""
    found = records.warnings(spec)
    # A request with predecessors cannot be previewed yet, so a new execution is assumed.
    if found and not spec.predecessors and not records.preview(spec).runs:
        return
    if is_strict and found:
        raise InvalidRequestError.of(found)
    for it in found:
        click.echo(f"jpsi: warning: {formatting.printable(it)}", err=True)


def draft(records: Records, spec: RequestSpec, more: About, *, as_json: bool) -> int:
    """Create a draft, for which nothing runs until it is committed."""
    return _print_request(records, records.draft(spec, more), as_json=as_json)


def update(  # noqa: PLR0913  options
    records: Records,
    request: str,
    spec: RequestSpec | None,
    *,
    name: str | None,
    labels: Mapping[str, str],
    expires_at: datetime | None,
    as_json: bool,
) -> int:
    """Change a draft."""
    found = records.request(request)
    more = About(
        name=found.name if name is None else name,
        description=found.description,
        labels=labels or found.labels,
        expires_at=found.expires_at if expires_at is None else expires_at,
        parent=found.parent,
    )
    return _print_request(records, records.update(request, spec, more), as_json=as_json)


def satisfy(records: Records, request: str, *, as_json: bool) -> int:
    """Assign a matching execution to a draft, or create one."""
    _warn(records, records.request(request).spec)
    return _print_request(records, records.satisfy(request), as_json=as_json)


def reset(records: Records, request: str, *, as_json: bool) -> int:
    """Detach the execution of a draft."""
    return _print_request(records, records.reset(request), as_json=as_json)


def commit(records: Records, request: str, *, priority: float, as_json: bool) -> int:
    """Commit a draft."""
    found = records.request(request)
    _check_executor(records, found.spec)
    if found.execution is None:
        _warn(records, found.spec)
    return _print_request(records, records.commit(request, priority=priority), as_json=as_json)


def run(records: Records, spec: RequestSpec, more: About, *, priority: float, is_strict: bool = False) -> int:
    """Create a request, dispatch or wait until it ends, print the logs, and return the exit code."""
    _check_executor(records, spec)
    _warn(records, spec, is_strict=is_strict)
    request = records.submit(spec, more, priority=priority)

    def is_over() -> bool:
        found = records.request(request.id)
        is_wanted = found.state is RequestState.COMMITTED and (found.priority or 0) > 0
        if is_wanted or found.execution is None:
            return not is_wanted
        # After a cancellation, the dispatcher goes on until it has cancelled the job.
        execution = records.execution(found.execution)
        return execution.state.ended or execution.state is ExecutionState.QUEUED or execution.priority > 0

    if records.may_dispatch:
        _dispatch_until(records, request.id, is_over)
    while not is_over():
        sleep(_POLL_SECONDS)
    request = records.request(request.id)
    if request.state is RequestState.COMMITTED or request.outcome == "cancelled":
        execution = None if request.execution is None else records.execution(request.execution)
        if (request.priority or 0) <= 0:
            click.echo(f"jpsi: {formatting.cancelled(request, execution)}", err=True)
            return CANCELLED
    if request.execution is None:
        reasons = (it.data["why"] for it in records.events(request=request.id) if it.kind == "refused")
        why = formatting.printable(next(reasons, request.outcome or ""))
        click.echo(f"jpsi: request {request.id} has no execution: {why}", err=True)
        return NO_EXIT_CODE
    execution = records.execution(request.execution)
    click.echo(f"jpsi: execution {execution.id}, {formatting.state(execution)}", err=True)
    if "error" in execution.status:
        click.echo(f"jpsi: {formatting.printable(execution.status['error'])}", err=True)
    _show_log(records, execution)
    if execution.exit_code is None:
        return NO_EXIT_CODE
    # A reported failure counts as a failure even if the job's exit code is 0.
    is_reported_failure = execution.exit_code == 0 and request.outcome == "failed"
    return NOT_COMPLETE if is_reported_failure else execution.exit_code


def wait(records: Records, requests: Sequence[str], *, timeout: float | None) -> int:
    """Wait until requests have ended. This runs nothing: a dispatcher must run in another process."""
    wanted = [records.request(it).id for it in requests]
    end = None if timeout is None else monotonic() + timeout
    while any(records.request(it).state is not RequestState.FINAL for it in wanted):
        if end is not None and monotonic() >= end:
            return TIMED_OUT
        sleep(_POLL_SECONDS)
    found = [records.request(it) for it in wanted]
    for it in found:
        click.echo(f"request {it.id}: {it.outcome}")
    return 0 if all(it.outcome == "complete" for it in found) else NOT_COMPLETE


def _dispatch_until(records: Records, request_id: str, is_over: Callable[[], bool]) -> None:
    is_printed = False

    def is_over_or_waits() -> bool:
        nonlocal is_printed
        if is_over():
            return True
        if not is_printed:
            is_printed = _print_holder(records, dispatcher, request_id)
        return False

    if not is_over():
        with _dispatching(records) as dispatcher:
            # The first round takes over executions that other dispatchers have left.
            dispatcher.step()
            dispatcher.run(is_over=is_over_or_waits)


def _print_holder(records: Records, dispatcher: Dispatcher, request_id: str) -> bool:
    execution = records.request(request_id).execution
    other = None if execution is None else dispatcher.waits_for(execution)
    if other is None:
        return False
    who = formatting.printable(other)
    click.echo(f"jpsi: another dispatcher, {who}, runs execution {execution}: waiting", err=True)
    return True


@contextlib.contextmanager
def _dispatching(records: Records) -> Iterator[Dispatcher]:
    """Yield a dispatcher that is closed at the end, even after SIGTERM or SIGHUP."""
    before = {it: signal.getsignal(it) for it in _END}
    dispatcher = Dispatcher(records)
    try:
        for it in _END:
            if before[it] is not signal.SIG_IGN:
                signal.signal(it, signal.default_int_handler)
        yield dispatcher
    finally:
        dispatcher.close()
        for it in _END:
            signal.signal(it, before[it])


def _show_log(records: Records, execution: Execution) -> None:
    log = {} if execution.log is None else records.blobs.manifest(execution.log)
    for name in ("stdout", "stderr"):
        if name in log:
            content = records.blobs.path(log[name].digest).read_bytes()
            click.echo(content, nl=False, err=name == "stderr")


def attach(  # noqa: PLR0913  options
    records: Records, spec: RequestSpec, execution: str, more: About, *, priority: float, as_json: bool
) -> int:
    """Create a request for the named execution and commit it."""
    request = records.submit(spec, more, priority=priority, execution=execution)
    return _print_request(records, request, as_json=as_json)


def rerun(records: Records, execution: str, *, priority: float, as_json: bool) -> int:
    """Submit a new run of what an execution has computed."""
    return _print_request(records, records.rerun(execution, priority=priority), as_json=as_json)


def set_priority(records: Records, request: str, priority: float, *, as_json: bool) -> int:
    """Change the priority of a request."""
    return _print_request(records, records.set_priority(request, priority), as_json=as_json)


def cancel(records: Records, request: str, *, as_json: bool) -> int:
    """Cancel a request, unless it has ended."""
    was_over = records.request(request).state is RequestState.FINAL
    found = records.cancel(request)
    execution = None if found.execution is None else records.execution(found.execution)
    if as_json:
        _show(formatting.as_json(found))
    elif was_over:
        click.echo(f"request {found.id} is over already: {found.outcome}")
    else:
        click.echo(formatting.cancelled(found, execution))
    return 0


def invalidate(records: Records, execution: str, why: str) -> int:
    """Exclude an execution from reuse by any further request."""
    found = records.invalidate(execution, why)
    click.echo(f"execution {found.id} satisfies no request any more")
    return 0


def put(records: Records, path: str, name: str | None) -> int:
    """Store a file or directory as a collection."""
    captured = records.put(path, name)
    for it in captured.left_out:
        click.echo(f"jpsi: warning: left out: {formatting.printable(it)}", err=True)
    click.echo(captured.digest)
    return 0


def get(records: Records, digest: str, target: str) -> int:
    """Write a collection to a directory."""
    records.blobs.lay_out(digest, Path(target), is_writable=True)
    return 0


def ls(records: Records, *, is_all: bool, state: str | None, as_json: bool) -> int:
    """List requests."""
    wanted = None if state is None else RequestState(state)
    found = records.requests(owner=None if is_all else records.user, state=wanted)
    if as_json:
        _show(formatting.as_json(found))
        return 0
    executions = {it.execution: records.execution(it.execution) for it in found if it.execution is not None}
    _show(formatting.requests((it, executions.get(it.execution or "")) for it in found))
    return 0


def show(records: Records, subject: str, *, as_json: bool) -> int:
    """Print everything about a request or an execution."""
    try:
        request: Request | None = records.request(subject)
    except AmbiguousError:
        raise
    except NotFoundError:
        request = None
    wanted = subject if request is None else request.execution
    execution = None if wanted is None else records.execution(wanted)
    attempts = [] if execution is None else records.attempts(execution.id)
    events = [] if request is None else records.events(request=request.id)
    events += [] if execution is None else records.events(execution=execution.id)
    events = sorted({it.seq: it for it in events}.values(), key=lambda it: it.seq)
    if as_json:
        document = {"request": request, "execution": execution, "attempts": attempts, "events": events}
        _show(formatting.as_json(document))
    else:
        _show(formatting.details(request, execution, attempts, events))
    return 0


def explain(records: Records, request: str) -> int:
    """Print why a request has its execution."""
    found = records.request(request)
    _show(formatting.explanation(found, records.events(request=found.id), records.passed_over(found.id)))
    return 0


def usage(records: Records, execution: str | None, user: str | None, *, as_json: bool) -> int:
    """List accounting intervals."""
    wanted = None if execution is None else records.execution(execution).id
    found = records.usage(execution=wanted, user=user)
    _show(formatting.as_json(found) if as_json else formatting.usage(found))
    return 0


def progress(records: Records, execution: str, value: float | None, report: Report) -> int:
    """Record the progress of an execution, or a report of success or failure."""
    records.set_progress(execution, value, report)
    return 0


def restore(records: Records) -> int:
    """Restore records from the copies beside the files of jobs."""
    found = reindex(records)
    for it in found.unreadable:
        click.echo(f"jpsi: warning: {formatting.printable(it)}", err=True)
    rebuilt = f"{found.executions} executions, {found.requests} requests and {found.names} names"
    click.echo(f"{rebuilt} were rebuilt")
    return 0


def dispatch(records: Records, *, until_idle: bool) -> int:
    """Run requested executions."""
    with _dispatching(records) as dispatcher:
        dispatcher.run(until_idle=until_idle)
    return 0


def serve(records: Records, *, port: int) -> int:
    """Serve the records as web pages until interrupted."""
    from ..web import Server  # noqa: PLC0415  the other commands need no server

    with Server(records, port) as server:
        click.echo(server.link)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _print_request(records: Records, request: Request, *, as_json: bool) -> int:
    if as_json:
        _show(formatting.as_json(request))
    else:
        execution = None if request.execution is None else records.execution(request.execution)
        _show(formatting.request(request, execution))
    return 0


def _show(text: str) -> None:
    click.echo(text, nl=False)
