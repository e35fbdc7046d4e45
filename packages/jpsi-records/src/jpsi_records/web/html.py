"""The only place where text becomes HTML: all of it is escaped, and only elements are not."""

from __future__ import annotations

import html
from collections.abc import Iterable

import attrs

from ..formatting import printable


@attrs.frozen(slots=True)
class Html:
    """Text that is HTML already."""

    text: str


#: What can be inside an element. None is nothing.
Content = Html | str | None

_VOID = frozenset({"link", "meta"})


def text(content: str) -> Html:
    """Text that is shown as it is; what would not be seen, or would turn what follows around, as an escape.

    >>> text("<b>" + chr(0x202E)).text == "&lt;b&gt;" + chr(92) + "u202e"
    True
    """
    return Html(html.escape(printable(content)))


def lines(content: str) -> Html:
    """Text of several lines."""
    return Html("\n".join(text(line.expandtabs()).text for line in content.split("\n")))


def element(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """An element; names of attributes end with an underscore where Python would not have them.

    >>> element("a", "1 < 2", href="?a&b", class_=None, hidden=True).text
    '<a href="?a&amp;b" hidden>1 &lt; 2</a>'
    """
    told = "".join(_attribute(key.rstrip("_").replace("_", "-"), it) for key, it in attributes.items())
    opened = f"<{name}{told}>"
    return Html(opened if name in _VOID else f"{opened}{joined(*content).text}</{name}>")


def _attribute(name: str, value: str | float | bool | None) -> str:  # noqa: FBT001  there, or not
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{text(str(value)).text}"'


def joined(*content: Content) -> Html:
    """One after the other."""
    escaped = (it if isinstance(it, Html) else text(it or "") for it in content)
    return Html("".join(it.text for it in escaped))


def listing(items: Iterable[Content], **attributes: str | float | bool | None) -> Html:
    """A list; nothing if it is empty."""
    found = [element("li", it) for it in items]
    return element("ul", *found, **attributes) if found else Html("")


def table(headings: Iterable[str], rows: Iterable[Iterable[Content]]) -> Html:
    """A table; nothing if it has no rows."""
    body = [element("tr", *(element("td", it) for it in row)) for row in rows]
    if not body:
        return Html("")
    head = element("tr", *(element("th", it, scope="col") for it in headings))
    inner = element("table", element("thead", head), element("tbody", *body))
    # One that is too wide moves by itself, and not the page.
    return element("div", inner, class_="wide")


def facts(rows: Iterable[tuple[str, Content]]) -> Html:
    """What there is to say, each with its name; what says nothing is left out."""
    pairs = [joined(element("dt", name), element("dd", it)) for name, it in rows if it not in {None, ""}]
    return element("dl", *pairs)
