"""Builds HTML for the web pages; only this module turns text into HTML, and it escapes all of it.

Names, commands and logs come from users and jobs: none of them can bring markup or scripts into a page.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

import attrs

from ..formatting import printable


@attrs.frozen(slots=True)
class Html:
    """Text that is HTML already."""

    text: str


#: Content of an element; None is empty.
Content = Html | str | None

# The elements without an end tag.
_VOID = frozenset({"link", "meta"})


def text(content: str) -> Html:
    """Return text as HTML; invisible characters, and those that change the text direction, are escaped.

    >>> text("<b>" + chr(0x202E)).text == "&lt;b&gt;" + chr(92) + "u202e"
    True
    """
    return Html(html.escape(printable(content)))


def lines(content: str) -> Html:
    """Return text of several lines as HTML."""
    return Html("\n".join(text(line.expandtabs()).text for line in content.split("\n")))


def element(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """Return an element; an underscore at the end of an attribute's name avoids Python's keywords.

    >>> element("a", "1 < 2", href="?a&b", class_=None, hidden=True).text
    '<a href="?a&amp;b" hidden>1 &lt; 2</a>'
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), it) for key, it in attributes.items())
    opened = f"<{name}{written}>"
    return Html(opened if name in _VOID else f"{opened}{joined(*content).text}</{name}>")


def _attribute(name: str, value: str | float | bool | None) -> str:  # noqa: FBT001  there, or not
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(str(value)).text}"'


def joined(*content: Content) -> Html:
    """Return contents joined."""
    escaped = (it if isinstance(it, Html) else text(it or "") for it in content)
    return Html("".join(it.text for it in escaped))


def listing(items: Iterable[Content]) -> Html:
    """Return a list; empty without items."""
    found = [element("li", it) for it in items]
    return element("ul", *found) if found else Html("")


def table(headings: Iterable[str], rows: Iterable[Iterable[Content]]) -> Html:
    """Return a table; empty without rows."""
    body = [element("tr", *(element("td", it) for it in row)) for row in rows]
    if not body:
        return Html("")
    head = element("tr", *(element("th", it, scope="col") for it in headings))
    inner = element("table", element("thead", head), element("tbody", *body))
    # A table that is too wide scrolls alone, not with the page.
    return element("div", inner, class_="wide")


def facts(rows: Iterable[tuple[str, Content]]) -> Html:
    """Return a description list of names and values, without empty values."""
    pairs = [joined(element("dt", name), element("dd", it)) for name, it in rows if it not in {None, ""}]
    return element("dl", *pairs)
