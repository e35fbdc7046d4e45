from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from jpsi_records.web.html import Html, element, facts, joined, lines, listing, table, text


class Reader(HTMLParser):
    """A parser that collects the elements and the text of HTML."""

    def __init__(self, html: Html) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_any_text_is_escaped(content: str, value: str) -> None:
    found = Reader(element("a", content, title=value))

    assert [tag for tag, _ in found.tags] == ["a"]
    assert list(found.tags[0][1]) == ["title"]
    assert all(it.isprintable() for it in found.text)


@given(st.text(st.characters(categories=["L", "P", "S"])))
def test_visible_characters_are_shown_unchanged(content: str) -> None:
    found = Reader(element("p", content, title=content))

    assert (found.text, found.tags[0][1]["title"]) == (content, content)


def test_control_characters_other_than_line_breaks_have_no_effect() -> None:
    assert lines("a\n\x1b[31m\n<b>\t.").text == "a\n\\x1b[31m\n&lt;b&gt;     ."


def test_an_element_is_not_escaped_twice() -> None:
    assert element("p", text("a&b"), joined("<", None, Html("<br>"))).text == "<p>a&amp;b&lt;<br></p>"


def test_empty_elements_are_omitted() -> None:
    assert table(("A",), []).text == listing([]).text == ""
    assert facts([("a", ""), ("b", None), ("c", "d")]).text == "<dl><dt>c</dt><dd>d</dd></dl>"
