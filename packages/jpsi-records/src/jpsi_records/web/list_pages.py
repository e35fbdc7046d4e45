"""Builds the web pages that list requests, executions and accounting intervals."""

from __future__ import annotations

from ..model import RequestState
from ..records import Records
from .components import (
    accounting,
    code,
    command_of,
    duration_of,
    moment,
    number,
    request_state,
    shortened,
    state,
    to_request,
)
from .html import Html, element, table
from .layout import Site, page

#: The number of requests or executions on a page.
PAGE_SIZE = 50
#: The largest number of accounting intervals on a page.
MAX_INTERVALS = 200


def request_list(records: Records, site: Site, owner: str | None, before: str | None) -> str:
    """Return the page of requests, the newest first; the owner None means all users."""
    found = records.newest_requests(PAGE_SIZE + 1, owner=owner, before=before)
    shown = found[:PAGE_SIZE]
    executions = records.executions([it.execution for it in shown if it.execution is not None])
    rows = []
    for it in shown:
        current = request_state(it, executions.get(it.execution or ""))
        rows.append((to_request(site, it), current, number(it.priority), it.owner, moment(it.created_at)))
    others = (
        element("a", "Show only yours", href=site.link(""))
        if owner is None
        else element("a", "Show everybody's", href=site.link("", all="1"))
    )
    none = element("p", "There are none. ", code("jpsi request submit FILE"), " makes one.")
    older = site.link("", all=None if owner else "1", before=shown[-1].id if shown else None)
    return page(
        site,
        "Requests",
        element("p", others),
        table(("Request", "State", "Priority", "Owner", "Made"), rows) if rows else none,
        _older(older) if len(found) > PAGE_SIZE else None,
        current="",
        is_live=any(it.state is RequestState.COMMITTED for it in shown),
    )


def execution_list(records: Records, site: Site, before: str | None) -> str:
    """Return the page of executions, the newest first."""
    found = records.newest_executions(PAGE_SIZE + 1, before=before)
    shown = found[:PAGE_SIZE]
    rows = [
        (
            element("a", shortened(command_of(it)), href=site.link("execution", it.id)),
            *(state(it), number(it.priority), moment(it.created_at), duration_of(it)),
        )
        for it in shown
    ]
    return page(
        site,
        "Executions",
        table(("Execution", "State", "Priority", "Made", "Ran for"), rows)
        if rows
        else element("p", "There are none."),
        _older(site.link("executions", before=shown[-1].id)) if len(found) > PAGE_SIZE else None,
        current="executions",
        is_live=any(not it.state.ended for it in shown),
    )


def _older(href: str) -> Html:
    return element("p", element("a", "Older", href=href, rel="next"))


def accounting_page(records: Records, site: Site) -> str:
    """Return the page with the accounting of the records' user."""
    usage = records.usage(user=records.user)[-MAX_INTERVALS:]
    return page(
        site,
        f"Accounting of {records.user}",
        accounting(site, usage, records.now()) if usage else element("p", "There are no requests yet."),
        current="accounting",
        is_live=any(it.end is None for it in usage),
    )
