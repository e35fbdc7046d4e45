"""The pages that list requests, executions and accounting intervals."""

from __future__ import annotations

from ..model import Execution, Request, RequestState
from .components import (
    code,
    command_of,
    intervals,
    lasted,
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


def requests(site: Site, look: Requests) -> str:
    """Return the page that lists requests."""
    rows = [
        (
            to_request(site, it),
            _state(it, look.executions.get(it.execution or "")),
            number(it.priority),
            it.owner,
            moment(it.created_at),
        )
        for it in look.requests
    ]
    found = table(("Request", "State", "Priority", "Owner", "Made"), rows)
    others = (
        element("a", "Show only yours", href=site.link(""))
        if look.owner is None
        else element("a", "Show everybody's", href=site.link("", all="1"))
    )
    older = site.link("", all=None if look.owner else "1", before=look.older)
    return page(
        site,
        "Requests",
        element("p", others),
        found if rows else element("p", "There are none. ", code("jpsi request submit FILE"), " makes one."),
        _older(look.older, older),
        current="",
        is_live=any(it.state is RequestState.COMMITTED for it in look.requests),
    )


def _state(request: Request, execution: Execution | None) -> Html:
    return outcome(request) if execution is None else state(execution)


def executions(site: Site, look: Executions) -> str:
    """Return the page that lists executions."""
    rows = [
        (
            element("a", shortened(command_of(it)), href=site.link("execution", it.id)),
            state(it),
            number(it.priority),
            moment(it.created_at),
            lasted(it),
        )
        for it in look.executions
    ]
    found = table(("Execution", "State", "Priority", "Made", "Ran for"), rows)
    return page(
        site,
        "Executions",
        found if rows else element("p", "There are none."),
        _older(look.older, site.link("executions", before=look.older)),
        current="executions",
        is_live=any(not it.state.ended for it in look.executions),
    )


def _older(before: str | None, href: str) -> Html | None:
    return None if before is None else element("p", element("a", "Older", href=href, rel="next"))


def accounting(site: Site, look: Accounting) -> str:
    """Return the page with a user's accounting timeline."""
    shown = joined(timeline(look.usage, look.now), intervals(site, look.usage))
    return page(
        site,
        f"Accounting of {look.user}",
        shown if look.usage else element("p", "Nothing was wanted yet."),
        current="accounting",
        is_live=any(it.end is None for it in look.usage),
    )
