"""The page of a request: its spec, and the reasons for its execution."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import RequestState, write_request_spec
from ..reuse import NearMiss
from .components import (
    code,
    describe_request,
    document,
    event_table,
    intervals,
    moment,
    number,
    outcome,
    section,
    shortened,
    state,
    to_execution,
)
from .html import Content, element, facts, joined, lines, listing, table
from .layout import Site, page
from .timeline import timeline
from .views import RequestView


def request(site: Site, view: RequestView) -> str:
    """Return the page of a request."""
    it, execution = view.request, view.execution
    shown = facts(
        [
            ("State", outcome(it) if execution is None else state(execution)),
            ("Outcome", it.outcome if execution is not None else None),
            ("Owner", it.owner),
            ("Priority", number(it.priority)),
            ("Made", moment(it.created_at)),
            ("Expires", moment(it.expires_at)),
            ("Labels", ", ".join(f"{key}={value}" for key, value in it.labels.items())),
            ("Description", it.description),
            ("Made by", None if it.parent is None else to_execution(site, it.parent)),
            ("Id", code(it.id)),
        ]
    )
    return page(
        site,
        shortened(describe_request(it)),
        shown,
        section("Why this execution", *_why(site, view)),
        section("Accounting", timeline(view.usage, view.now), intervals(site, view.usage)),
        section("What happened", event_table(view.events)),
        section("What was asked for", document(write_request_spec(it.spec))),
        is_live=it.state is RequestState.COMMITTED,
    )


def _why(site: Site, view: RequestView) -> Iterator[Content]:
    """Yield why a request has its execution, or has none."""
    if view.execution is None:
        yield from _why_none(site, view)
        return
    assigned = next((it for it in reversed(view.events) if it.kind == "assigned"), None)
    there = to_execution(site, view.execution.id)
    if assigned is None or not assigned.data.get("is_new"):
        yield element(
            "p", "Execution ", there, " was there: it computes the same, and nothing speaks against it."
        )
        return
    yield element("p", "Execution ", there, " was made for it: nothing that was there satisfied it.")
    refused = assigned.data.get("refused", {})
    yield listing(
        joined("Execution ", to_execution(site, it), " computes the same, but ", "; ".join(why), ".")
        for it, why in refused.items()
    )
    for near in view.near_misses:
        if near.differences:
            yield from _near(site, near)


def _why_none(site: Site, view: RequestView) -> Iterator[Content]:
    refused = next((it for it in reversed(view.events) if it.kind == "refused"), None)
    if refused is not None:
        yield element("p", "It has none: ", lines(str(refused.data.get("why", ""))))
    elif view.request.state is RequestState.DRAFT:
        yield element("p", "It has none, as it is a draft.")
    else:
        yield element("p", "It has none before those that it waits for have ended well:")
        yield listing(
            element("a", code(it), href=site.link("request", it)) for it in view.request.spec.predecessors
        )


def _near(site: Site, near: NearMiss) -> Iterator[Content]:
    yield element("p", "Execution ", to_execution(site, near.execution.id), " is close:")
    rows = [(code(it.where), code(it.wanted), code(it.found)) for it in near.differences]
    yield table(("Where", "Here", "There"), rows)
