"""Builds the layout that all web pages share, and the addresses of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import quote, urlencode

import attrs

from .html import Content, element

_NAVIGATION = {"": "Requests", "executions": "Executions", "accounting": "Accounting"}
# The seconds after which a browser without scripts reloads a page that may change.
_RELOAD_SECONDS = "5"


@attrs.frozen(slots=True)
class Site:
    """The addresses of the pages."""

    #: The first part of every path, which is a secret.
    path_prefix: str

    def link(self, *parts: str, **query: str | None) -> str:
        """Return the address of a page."""
        query_string = urlencode({key: it for key, it in query.items() if it is not None})
        path = "/".join(["", self.path_prefix, *(quote(it, safe="") for it in parts)])
        return f"{path or '/'}{'?' if query_string else ''}{query_string}"


def page(site: Site, title: str, *content: Content, current: str | None = None, is_live: bool = False) -> str:
    """Return a complete page.

    Args:
        site: the addresses of the pages.
        title: the heading.
        content: the content below the heading.
        current: the path of this page if the navigation links to it.
        is_live: True if the page may change soon, so that browsers reload it.
    """
    links = [
        element("a", name, href=site.link(path), **({"aria_current": "page"} if path == current else {}))
        for path, name in _NAVIGATION.items()
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · jpsi"),
        element("link", rel="stylesheet", href=site.link("style.css")),
        element("script", src=site.link("refresh.js"), defer=True),
    ]
    if is_live:
        head.append(element("noscript", element("meta", http_equiv="refresh", content=_RELOAD_SECONDS)))
    main = element("main", element("h1", title), *content, data_live="yes" if is_live else None)
    return _whole(head, element("header", element("strong", "jpsi"), *links), main)


def _whole(head: Iterable[Content], *body: Content) -> str:
    html = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{html.text}\n"


def welcome(site: Site) -> str:
    """Return the page for a visit with the token; it forwards the browser to an address without the token."""
    # Not a redirect: after a link on another site, browsers do not send a SameSite=Strict cookie with one.
    home = site.link("")
    head = [element("meta", charset="utf-8"), element("meta", http_equiv="refresh", content=f"0; url={home}")]
    return _whole(head, element("p", element("a", "Requests", href=home)))


def refusal(status: HTTPStatus, why: str) -> str:
    """Return a page that says why the request failed."""
    head = [element("meta", charset="utf-8"), element("title", "jpsi")]
    return _whole(head, element("h1", status.phrase), element("p", why))
