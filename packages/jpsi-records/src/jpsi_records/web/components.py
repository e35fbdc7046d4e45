"""What several pages show: links, times, states, and what has happened."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

from .. import formatting
from ..model import Event, Execution, ExecutionState, Interval, Request
from ..reuse import recalled
from .html import Content, Html, element, joined, lines, table
from .layout import Site
from .timeline import duration

_LONGEST = 80


def section(title: str, *content: Content) -> Html:
    """Content below a heading; nothing if there is none."""
    inner = joined(*content)
    return joined(element("h2", title), inner) if inner.text else inner


def moment(time: datetime | None) -> Html | None:
    """A point in time, as it is called where the records are."""
    if time is None:
        return None
    return element("time", time.astimezone().strftime("%Y-%m-%d %H:%M:%S"), datetime=time.isoformat())


def code(text: str) -> Html:
    """Something that could be typed."""
    return element("code", text)


def to_request(site: Site, request: Request) -> Html:
    """A link to a request, by what its owner calls it."""
    return element("a", shortened(told_of(request)), href=site.link("request", request.id))


def told_of(request: Request) -> str:
    """What its owner calls a request, or else what it wants to have run."""
    computation = request.wish.computation
    return request.name or shlex.join(computation.command) or f"what {computation.container_image} says"


def to_execution(site: Site, execution_id: str) -> Html:
    """A link to an execution."""
    return element("a", code(execution_id), href=site.link("execution", execution_id))


def command_of(execution: Execution) -> str:
    """What an execution runs."""
    members = recalled(execution.preimage)
    return shlex.join(members["command"]) or f"what {members['container_image']} says"


def shortened(text: str) -> str:
    """Text as far as it fits into a line of a table."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_LOOKS: Mapping[ExecutionState, str] = {
    ExecutionState.QUEUED: "waits",
    ExecutionState.CLAIMED: "waits",
    ExecutionState.RUNNING: "runs",
    ExecutionState.CANCELLED: "over",
}


def state(execution: Execution) -> Html:
    """How far an execution is."""
    looks = _LOOKS.get(execution.state) or ("bad" if execution.has_failed else "good")
    told = element("span", formatting.state(execution), class_=f"state {looks}")
    if execution.state is not ExecutionState.RUNNING:
        return told
    return joined(element("progress", value=f"{execution.progress:g}", max=1), told)


def outcome(request: Request) -> Html:
    """How far a request is, without an execution to tell that."""
    looks = "bad" if request.outcome in {"dependency_failed", "failed", "refused"} else "over"
    told = request.outcome or ("waits for others" if request.priority is not None else "draft")
    return element("span", told, class_=f"state {looks}")


def number(value: float | None) -> str:
    """A priority."""
    return "" if value is None else f"{value:g}"


def lasted(execution: Execution) -> str:
    """How long an execution ran; empty if it has not ended."""
    if execution.started_at is None or execution.finished_at is None:
        return ""
    return duration((execution.finished_at - execution.started_at).total_seconds())


def happened(found: Sequence[Event]) -> Html:
    """What has happened, in order."""
    rows = [
        (moment(it.time), it.kind, ", ".join(f"{key} {told}" for key, told in it.data.items()))
        for it in found
    ]
    return table(("When", "What", ""), rows)


def intervals(site: Site, found: Sequence[Interval]) -> Html:
    """Intervals of accounting."""
    rows = [
        (
            moment(it.start),
            moment(it.end) or "now",
            it.user,
            number(it.priority),
            it.state.value,
            element("a", code(it.request), href=site.link("request", it.request)),
        )
        for it in found
    ]
    return table(("From", "To", "User", "Priority", "State", "Request"), rows)


def document(value: object) -> Html:
    """A value of JSON."""
    return element("pre", lines(json.dumps(value, indent=2, ensure_ascii=False)), tabindex="0")
