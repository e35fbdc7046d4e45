"""The page of an execution: its state, logs, output and requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ..model import Execution, ExecutionState, Request
from .components import (
    code,
    command_of,
    document,
    duration_of,
    event_table,
    intervals,
    moment,
    number,
    section,
    shortened,
    state,
    to_request,
)
from .html import Content, Html, element, facts, lines, table
from .layout import Site, page
from .timeline import timeline
from .views import ExecutionView

# The largest number of output files on the page.
_FILES = 100


def execution(site: Site, view: ExecutionView) -> str:
    """Return the page of an execution."""
    it = view.execution
    shown = facts(
        [
            ("State", state(it)),
            *((key.capitalize(), told) for key, told in it.status.items()),
            ("Not used again", None if it.invalidated_by is None else f"{it.invalidated_by} says so"),
            ("Priority", number(it.priority)),
            ("Made", moment(it.created_at)),
            ("Started", moment(it.started_at)),
            ("Ended", moment(it.finished_at)),
            ("Ran for", duration_of(it)),
            ("Recorded", ", ".join(f"{key} {value}" for key, value in it.recorded.items())),
            ("Fingerprint", code(it.fingerprint)),
            ("Id", code(it.id)),
        ]
    )
    return page(
        site,
        shortened(command_of(it)),
        shown,
        _hint(it),
        *(section(f"Log: {name}", *_log(site, view, name)) for name in view.logs),
        section("Output", *_output(view)),
        section("Who wants it", _interested(site, view.requests)),
        section("Accounting", timeline(view.usage, view.now), intervals(site, view.usage)),
        section("Jobs", _attempts(view)),
        section("What happened", event_table(view.events)),
        section("What it computes", document(json.loads(it.preimage))),
        is_live=not it.state.ended,
    )


def _hint(execution: Execution) -> Html | None:
    if execution.state is not ExecutionState.QUEUED:
        return None
    if execution.priority <= 0:
        return element("p", "Nobody wants it to run: no request for it has a priority above 0.")
    return element("p", "It waits for a dispatcher: ", code("jpsi request dispatch"), ".")


def _log(site: Site, view: ExecutionView, name: str) -> Iterator[Content]:
    piece = view.logs[name]
    whole = site.link("log", view.execution.id, str(view.attempts[-1].number), name)
    if not piece.content:
        yield element("p", "Nothing.", class_="quiet")
        return
    yield element("pre", lines(piece.text), tabindex="0")
    skipped = f", without the first {piece.skipped} bytes" if piece.skipped else ""
    yield element("p", element("a", "All of it", href=whole), skipped)


def _output(view: ExecutionView) -> Iterator[Content]:
    if view.execution.output is None:
        return
    rows = [
        (code(path), f"{it.size} bytes" if it.link is None else f"leads to {it.link}")
        for path, it in sorted(view.output.items())[:_FILES]
    ]
    yield table(("File", "Size"), rows)
    if len(view.output) > _FILES:
        yield element("p", f"And {len(view.output) - _FILES} more.")
    yield element("p", code(f"jpsi request get {view.execution.output} DIRECTORY"), " writes it.")


def _interested(site: Site, found: Sequence[Request]) -> Html:
    rows = [
        (to_request(site, it), it.owner, number(it.priority), it.outcome or it.state.value) for it in found
    ]
    return table(("Request", "Owner", "Priority", "State"), rows)


def _attempts(view: ExecutionView) -> Html:
    rows = [
        (
            str(it.number),
            f"{it.state}{f' ({it.reason})' if it.reason else ''}",
            it.executor,
            code(it.native_id or ""),
            code(it.job),
            it.message or "",
        )
        for it in view.attempts
    ]
    return table(("Attempt", "State", "Executor", "Native id", "Job", "Message"), rows)
