"""The pages that list requests, executions and accounting intervals."""

from __future__ import annotations

from ..model import Execution, Request, RequestState
from .components import (
    code,
    command_of,
    duration_of,
    intervals,
    moment,
    number,
    outcome,
    shortened,
    state,
    to_request,
)
from .html import Html, element, joined, table
from .layout import Site, page
from .timeline import timeline
from .views import Accounting, Executions, Requests


def requests(site: Site, view: Requests) -> str:
    """Return the page that lists requests."""
    rows = [
        (
            to_request(site, it),
            _state(it, view.executions.get(it.execution or "")),
            number(it.priority),
            it.owner,
            moment(it.created_at),
        )
        for it in view.requests
    ]
    found = table(("Request", "State", "Priority", "Owner", "Made"), rows)
    others = (
        element("a", "Show only yours", href=site.link(""))
        if view.owner is None
        else element("a", "Show everybody's", href=site.link("", all="1"))
    )
    older = site.link("", all=None if view.owner else "1", before=view.older)
    return page(
        site,
        "Requests",
        element("p", others),
        found if rows else element("p", "There are none. ", code("jpsi request submit FILE"), " makes one."),
        _older(view.older, older),
        current="",
        is_live=any(it.state is RequestState.COMMITTED for it in view.requests),
    )


def _state(request: Request, execution: Execution | None) -> Html:
    return outcome(request) if execution is None else state(execution)


def executions(site: Site, view: Executions) -> str:
    """Return the page that lists executions."""
    rows = [
        (
            element("a", shortened(command_of(it)), href=site.link("execution", it.id)),
            state(it),
            number(it.priority),
            moment(it.created_at),
            duration_of(it),
        )
        for it in view.executions
    ]
    found = table(("Execution", "State", "Priority", "Made", "Ran for"), rows)
    return page(
        site,
        "Executions",
        found if rows else element("p", "There are none."),
        _older(view.older, site.link("executions", before=view.older)),
        current="executions",
        is_live=any(not it.state.ended for it in view.executions),
    )


def _older(before: str | None, href: str) -> Html | None:
    return None if before is None else element("p", element("a", "Older", href=href, rel="next"))


def accounting(site: Site, view: Accounting) -> str:
    """Return the page with a user's accounting timeline."""
    shown = joined(timeline(view.usage, view.now), intervals(site, view.usage))
    return page(
        site,
        f"Accounting of {view.user}",
        shown if view.usage else element("p", "Nothing was wanted yet."),
        current="accounting",
        is_live=any(it.end is None for it in view.usage),
    )
