"""Builds the web pages of one request and of one execution."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..errors import NotFoundError, StoreError
from ..formatting import assignment
from ..model import Attempt, Event, Execution, ExecutionState, Request, RequestState, write_request_spec
from ..records import LOG_NAMES, Records, read_log
from .components import (
    accounting,
    code,
    command_of,
    describe_request,
    document,
    duration_of,
    event_table,
    moment,
    number,
    request_state,
    section,
    shortened,
    state,
    to_execution,
    to_request,
)
from .html import Content, Html, element, facts, joined, lines, listing, table
from .layout import Site, page
from .list_pages import MAX_INTERVALS

# The largest numbers of output files, and of bytes of a log.
_MAX_FILES = 100
_MAX_LOG_BYTES = 64 * 1024


def request_page(records: Records, site: Site, request_id: str) -> str:
    """Return the page of a request: its spec, and the reasons for its execution."""
    request = records.request(request_id)
    execution = None if request.execution is None else records.execution(request.execution)
    events = records.events(request=request_id)
    usage = [] if execution is None else records.usage(execution=execution.id)
    own = [it for it in usage if it.request == request_id][-MAX_INTERVALS:]
    shown = facts(
        [
            ("State", request_state(request, execution)),
            ("Outcome", None if execution is None else request.outcome),
            ("Owner", request.owner),
            ("Priority", number(request.priority)),
            ("Made", moment(request.created_at)),
            ("Expires", moment(request.expires_at)),
            ("Labels", ", ".join(f"{key}={value}" for key, value in request.labels.items())),
            ("Description", request.description),
            ("Made by", None if request.parent is None else to_execution(site, request.parent)),
            ("Id", code(request.id)),
        ]
    )
    why = (
        _no_execution(site, request, events)
        if execution is None
        else _assigned(records, site, request, events)
    )
    return page(
        site,
        shortened(describe_request(request)),
        shown,
        section("Why this execution", *why),
        section("Accounting", accounting(site, own, records.now())),
        section("What happened", event_table(events)),
        section("Specification", document(write_request_spec(request.spec))),
        is_live=request.state is RequestState.COMMITTED,
    )


def _assigned(records: Records, site: Site, request: Request, events: Sequence[Event]) -> Iterator[Content]:
    """Yield why a request has its execution."""
    assigned = assignment(request, events)
    link = to_execution(site, request.execution or "")
    if assigned is None or not assigned.data.get("is_new"):
        reason = " existed: it computes the same, and satisfies the request."
        yield element("p", "Execution ", link, reason)
        return
    if assigned.data.get("was_cancelled"):
        reason = " waited for requests that were cancelled, and is computed for it."
        yield element("p", "Execution ", link, reason)
        return
    yield element("p", "Execution ", link, " was made for it: no earlier execution satisfied it.")
    yield listing(
        joined("Execution ", to_execution(site, it), " computes the same, but ", "; ".join(why), ".")
        for it, why in assigned.data.get("refused", {}).items()
    )
    for near in records.passed_over(request.id):
        if near.differences:
            yield element("p", "Execution ", to_execution(site, near.execution.id), " is close:")
            rows = [(code(it.where), code(it.wanted), code(it.found)) for it in near.differences]
            yield table(("Where", "Here", "There"), rows)


def _no_execution(site: Site, request: Request, events: Sequence[Event]) -> Iterator[Content]:
    """Yield why a request has no execution."""
    refused = next((it for it in reversed(events) if it.kind == "refused"), None)
    if refused is not None:
        yield element("p", "It has none: ", lines(str(refused.data.get("why", ""))))
    elif request.state is RequestState.DRAFT:
        yield element("p", "It has none, as it is a draft.")
    elif request.state is RequestState.CANCELLED:
        yield element("p", "It has none, as it was cancelled.")
    elif not request.spec.predecessors:
        yield element("p", "It gets one from a dispatcher: ", code("jpsi request dispatch"), ".")
    else:
        yield element("p", "It gets one when these requests have succeeded:")
        yield listing(
            element("a", code(it), href=site.link("request", it)) for it in request.spec.predecessors
        )


def execution_page(records: Records, site: Site, execution_id: str) -> str:
    """Return the page of an execution: its state, logs, output and requests."""
    execution = records.execution(execution_id)
    attempts = records.attempts(execution_id)
    invalidated_by = execution.invalidated_by
    shown = facts(
        [
            ("State", state(execution)),
            *((key.capitalize(), value) for key, value in execution.status.items()),
            ("Not used again", None if invalidated_by is None else f"{invalidated_by} says so"),
            ("Priority", number(execution.priority)),
            ("Made", moment(execution.created_at)),
            ("Started", moment(execution.started_at)),
            ("Ended", moment(execution.finished_at)),
            ("Ran for", duration_of(execution)),
            ("Recorded", ", ".join(f"{key} {value}" for key, value in execution.recorded.items())),
            ("Fingerprint", code(execution.fingerprint)),
            ("Id", code(execution.id)),
        ]
    )
    usage = records.usage(execution=execution_id)[-MAX_INTERVALS:]
    return page(
        site,
        shortened(command_of(execution)),
        shown,
        _hint(execution),
        *(_logs(records, site, execution, attempts[-1]) if attempts else ()),
        section("Output", *_output(records, execution)),
        section("Requests", _requests_table(site, records.requests(execution=execution_id))),
        section("Accounting", accounting(site, usage, records.now())),
        section("Jobs", _attempts(attempts)),
        section("What happened", event_table(records.events(execution=execution_id))),
        section("What it computes", document(json.loads(execution.preimage))),
        is_live=not execution.state.ended,
    )


def _hint(execution: Execution) -> Html | None:
    if execution.state is not ExecutionState.QUEUED:
        return None
    if execution.priority <= 0:
        return element("p", "It does not run, as no request for it has a priority above 0.")
    return element("p", "It waits for a dispatcher: ", code("jpsi request dispatch"), ".")


def _logs(records: Records, site: Site, execution: Execution, last: Attempt) -> Iterator[Content]:
    for name in LOG_NAMES:
        try:
            content, skipped = read_log(records, execution, last, name, _MAX_LOG_BYTES)
        except (NotFoundError, StoreError):
            continue
        if not content:
            yield section(f"Log: {name}", element("p", "Nothing.", class_="quiet"))
            continue
        text = element("pre", lines(content.decode(errors="replace")), tabindex="0")
        whole = element("a", "All of it", href=site.link("log", execution.id, str(last.number), name))
        note = f", without the first {skipped} bytes" if skipped else ""
        yield section(f"Log: {name}", text, element("p", whole, note))


def _output(records: Records, execution: Execution) -> Iterator[Content]:
    if execution.output is None:
        return
    try:
        output = records.blobs.manifest(execution.output)
    except StoreError:
        # A missing output must not hide the rest of the page.
        output = {}
    rows = [
        (code(path), f"{it.size} bytes" if it.link is None else f"leads to {it.link}")
        for path, it in sorted(output.items())[:_MAX_FILES]
    ]
    yield table(("File", "Size"), rows)
    if len(output) > _MAX_FILES:
        yield element("p", f"And {len(output) - _MAX_FILES} more.")
    yield element("p", code(f"jpsi request get {execution.output} DIRECTORY"), " writes it.")


def _requests_table(site: Site, requests: Sequence[Request]) -> Html:
    rows = [(to_request(site, it), it.owner, number(it.priority), it.shown_state) for it in requests]
    return table(("Request", "Owner", "Priority", "State"), rows)


def _attempts(attempts: Sequence[Attempt]) -> Html:
    rows = [
        (
            *(str(it.number), f"{it.state} ({it.reason})" if it.reason else it.state, it.executor),
            *(code(it.native_id or ""), code(it.job), it.message or ""),
        )
        for it in attempts
    ]
    return table(("Attempt", "State", "Executor", "Native id", "Job", "Message"), rows)
