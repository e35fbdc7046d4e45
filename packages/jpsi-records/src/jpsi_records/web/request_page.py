"""The page of a request: its spec, and the reasons for its execution."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import RequestState, write_wish
from ..reuse import NearMiss
from .components import (
    code,
    document,
    happened,
    intervals,
    moment,
    number,
    outcome,
    section,
    shortened,
    state,
    to_execution,
    told_of,
)
from .html import Content, element, facts, joined, lines, listing, table
from .layout import Site, page
from .timeline import timeline
from .views import RequestLook


def request(site: Site, look: RequestLook) -> str:
    """Return the page of a request."""
    it, execution = look.request, look.execution
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
        shortened(told_of(it)),
        shown,
        section("Why this execution", *_why(site, look)),
        section("Accounting", timeline(look.usage, look.now), intervals(site, look.usage)),
        section("What happened", happened(look.events)),
        section("What was asked for", document(write_wish(it.wish))),
        is_live=it.state is RequestState.COMMITTED,
    )


def _why(site: Site, look: RequestLook) -> Iterator[Content]:
    """Yield why a request has its execution, or has none."""
    if look.execution is None:
        yield from _why_none(site, look)
        return
    assigned = next((it for it in reversed(look.events) if it.kind == "assigned"), None)
    there = to_execution(site, look.execution.id)
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
    for near in look.near_misses:
        if near.differences:
            yield from _near(site, near)


def _why_none(site: Site, look: RequestLook) -> Iterator[Content]:
    refused = next((it for it in reversed(look.events) if it.kind == "refused"), None)
    if refused is not None:
        yield element("p", "It has none: ", lines(str(refused.data.get("why", ""))))
    elif look.request.state is RequestState.DRAFT:
        yield element("p", "It has none, as it is a draft.")
    else:
        yield element("p", "It has none before those that it waits for have ended well:")
        yield listing(
            element("a", code(it), href=site.link("request", it)) for it in look.request.wish.predecessors
        )


def _near(site: Site, near: NearMiss) -> Iterator[Content]:
    yield element("p", "Execution ", to_execution(site, near.execution.id), " is close:")
    rows = [(code(it.where), code(it.wanted), code(it.found)) for it in near.differences]
    yield table(("Where", "Here", "There"), rows)
