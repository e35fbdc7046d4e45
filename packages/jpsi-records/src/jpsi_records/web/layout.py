"""The frame of every page, and where pages are."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote, urlencode

import attrs

from .html import Content, element

_PAGES = {"": "Requests", "executions": "Executions", "accounting": "Accounting"}
# How often a browser without scripts loads a page that may change.
_SECONDS = "5"


@attrs.frozen(slots=True)
class Site:
    """Where the pages are."""

    #: The first part of every path, which nobody else knows.
    place: str

    def link(self, *parts: str, **query: str | None) -> str:
        """The address of a page."""
        asked = urlencode({key: it for key, it in query.items() if it is not None})
        path = "/".join(["", self.place, *(quote(it, safe="") for it in parts)])
        return f"{path or '/'}{'?' if asked else ''}{asked}"


def page(site: Site, title: str, *content: Content, current: str | None = None, is_live: bool = False) -> str:
    """A whole page.

    Args:
        site: where it is.
        title: its heading.
        content: what is on it.
        current: which of the pages that are always linked it is.
        is_live: whether it may look different soon.
    """
    links = [
        element("a", name, href=site.link(path), **({"aria_current": "page"} if path == current else {}))
        for path, name in _PAGES.items()
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · jpsi"),
        element("link", rel="stylesheet", href=site.link("style.css")),
        element("script", src=site.link("refresh.js"), defer=True),
    ]
    if is_live:
        head.append(element("noscript", element("meta", http_equiv="refresh", content=_SECONDS)))
    main = element("main", element("h1", title), *content, data_live="yes" if is_live else None)
    body = element("body", element("header", element("strong", "jpsi"), *links), main)
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), body, lang='en').text}\n"


def welcome(site: Site) -> str:
    """What whoever comes with the link sees for an instant; the browser then leaves the token behind."""
    # No redirect: of one that begins elsewhere the browser would leave the cookie out.
    on = site.link("")
    head = [element("meta", charset="utf-8"), element("meta", http_equiv="refresh", content=f"0; url={on}")]
    body = element("body", element("p", element("a", "Requests", href=on)))
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), body, lang='en').text}\n"


def refusal(status: HTTPStatus, why: str) -> str:
    """A page that says why there is none."""
    head = [element("meta", charset="utf-8"), element("title", "jpsi")]
    body = element("body", element("h1", status.phrase), element("p", why))
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), body, lang='en').text}\n"
