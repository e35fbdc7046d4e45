"""Builds the parts that several web pages share: links, times, states and events."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

from .. import formatting
from ..model import Event, Execution, ExecutionState, Interval, Request, RequestState
from ..reuse import recalled
from .html import Content, Html, element, joined, lines, table
from .layout import Site
from .timeline import duration, timeline

_MAX_LENGTH = 80


def section(title: str, *content: Content) -> Html:
    """Return content below a heading; empty if there is no content."""
    inner = joined(*content)
    return joined(element("h2", title), inner) if inner.text else inner


def moment(time: datetime | None) -> Html | None:
    """Return a time in the time zone of this machine."""
    if time is None:
        return None
    return element("time", time.astimezone().strftime("%Y-%m-%d %H:%M:%S"), datetime=time.isoformat())


def code(text: str) -> Html:
    """Return text in a fixed-width font."""
    return element("code", text)


def to_request(site: Site, request: Request) -> Html:
    """Return a link to a request, by its name or command."""
    return element("a", shortened(describe_request(request)), href=site.link("request", request.id))


def describe_request(request: Request) -> str:
    """Return the name of a request, or else its command or image."""
    computation = request.spec.computation
    return request.name or shlex.join(computation.command) or f"what {computation.container_image} says"


def to_execution(site: Site, execution_id: str) -> Html:
    """Return a link to an execution."""
    return element("a", code(execution_id), href=site.link("execution", execution_id))


def command_of(execution: Execution) -> str:
    """Return the command or image of an execution."""
    members = recalled(execution.preimage)
    return shlex.join(members["command"]) or f"what {members['container_image']} says"


def shortened(text: str) -> str:
    """Return text, cut to fit into a line of a table."""
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


_STATE_CLASSES: Mapping[ExecutionState, str] = {
    ExecutionState.QUEUED: "waits",
    ExecutionState.CLAIMED: "waits",
    ExecutionState.RUNNING: "runs",
    ExecutionState.CANCELLED: "over",
}


def state(execution: Execution) -> Html:
    """Return the state of an execution, with a progress bar while it runs."""
    has_failed = execution.has_failed or execution.failed_without_result
    css_class = "bad" if has_failed else _STATE_CLASSES.get(execution.state, "good")
    text = element("span", formatting.state(execution), class_=f"state {css_class}")
    if execution.state is not ExecutionState.RUNNING:
        return text
    return joined(element("progress", value=f"{execution.progress:g}", max=1), text)


def request_state(request: Request, execution: Execution | None) -> Html:
    """Return the state of a request: that of its execution, unless it has none or was cancelled."""
    if execution is not None and request.state is not RequestState.CANCELLED:
        return state(execution)
    css_class = "bad" if request.outcome in {"dependency_failed", "failed", "refused"} else "over"
    waits = request.state is RequestState.COMMITTED
    text = "waits for others" if waits and not request.outcome else request.shown_state
    return element("span", text, class_=f"state {css_class}")


def number(value: float | None) -> str:
    """Return a priority as text."""
    return "" if value is None else f"{value:g}"


def duration_of(execution: Execution) -> str:
    """Return the duration of an execution; empty if it has not ended."""
    if execution.started_at is None or execution.finished_at is None:
        return ""
    return duration((execution.finished_at - execution.started_at).total_seconds())


def event_table(events: Sequence[Event]) -> Html:
    """Return a table of events."""
    rows = [
        (
            moment(it.time),
            it.kind,
            ", ".join(f"{key} {value}" for key, value in formatting.event_data(it).items()),
        )
        for it in events
    ]
    return table(("When", "What", ""), rows)


def accounting(site: Site, intervals: Sequence[Interval], now: datetime) -> Html:
    """Return the timeline and a table of accounting intervals; empty without intervals."""
    rows = [
        (
            *(moment(it.start), moment(it.end) or "now", it.user, number(it.priority), it.state.value),
            element("a", code(it.request), href=site.link("request", it.request)),
        )
        for it in intervals
    ]
    headings = ("From", "To", "User", "Priority", "State", "Request")
    return joined(timeline(intervals, now), table(headings, rows))


def document(value: object) -> Html:
    """Return a JSON value as preformatted text."""
    return element("pre", lines(json.dumps(value, indent=2, ensure_ascii=False)), tabindex="0")
