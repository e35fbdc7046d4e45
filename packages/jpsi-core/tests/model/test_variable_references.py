"""`${NAME}`: what is expanded, and that nothing else is."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.variable_references import Reference, escape, expand, has_reference, pieces

# Texts made of what matters to the rule, so that references, near-references and escapes are frequent.
scraps = st.sampled_from(
    ["$", "$$", "{", "}", "${", "${A}", "$${A}", "${AB_1}", "${1A}", "${}", "A", "é", "\n"]
)
texts = st.lists(scraps | st.text(max_size=3), max_size=8).map("".join)
environments = st.dictionaries(st.sampled_from(["A", "AB_1", "_", "B"]), texts, max_size=4)


def model(text: str, environment: dict[str, str], *, keep_unset: bool) -> str:
    """Apply the rule in the module's docstring: a left-to-right walk, without a regex."""
    out = ""
    while text:
        dollars = len(text) - len(text.lstrip("$"))
        name, closing, rest = text[dollars + 1 :].partition("}")
        if dollars and text[dollars : dollars + 1] == "{" and closing and is_identifier(name):
            if dollars > 1:
                out += "$" * (dollars - 1) + "{" + name + "}"
            else:
                out += environment.get(name, "${" + name + "}" if keep_unset else "")
            text = rest
        else:
            out += text[: max(dollars, 1)]
            text = text[max(dollars, 1) :]
    return out


def is_identifier(name: str) -> bool:
    letters = string.ascii_letters + "_"
    return name[:1] in (*letters,) and all(char in letters + string.digits for char in name)


@pytest.mark.clause("spec-expansion")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "1"),
        ("a${A}b${A}", "a1b1"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A", "$A"),
        ("$$", "$$"),
        ("${A", "${A"),
        ("${}", "${}"),
        ("${1A}", "${1A}"),
        ("${A-b}", "${A-b}"),
        ("${A }", "${A }"),
        ("${é}", "${é}"),
        ("${${A}}", "${1}"),
        ("{A}", "{A}"),
        (r"\${A}", r"\1"),
        ("$(A) `A`", "$(A) `A`"),
        ("", ""),
    ],
)
def test_only_a_name_in_braces_behind_one_dollar_is_expanded(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}, keep_unset=True) == expected


@pytest.mark.parametrize(("keep", "expected"), [(True, "<${B}>"), (False, "<>")], ids=["kept", "emptied"])
def test_unset_name_stays_in_arguments_and_is_empty_in_values(keep: bool, expected: str) -> None:
    assert expand("<${B}>", {"A": "1"}, keep_unset=keep) == expected


def test_value_is_not_expanded_again() -> None:
    assert expand("${A}", {"A": "${B}", "B": "1"}, keep_unset=False) == "${B}"


@given(texts, environments, st.booleans())
def test_expansion_follows_the_model(text: str, environment: dict[str, str], keep: bool) -> None:
    assert expand(text, environment, keep_unset=keep) == model(text, environment, keep_unset=keep)


@given(texts | st.text(), environments, st.booleans())
def test_escaped_text_is_literal(text: str, environment: dict[str, str], keep: bool) -> None:
    assert expand(escape(text), environment, keep_unset=keep) == text


@given(texts)
def test_text_without_reference_is_literal_and_not_changed_by_escaping(text: str) -> None:
    if not has_reference(text):
        assert list(pieces(text)) == ([text] if text else [])
        assert escape(text) == text
    else:
        assert escape(text) != text


@given(texts)
def test_pieces_are_literals_and_valid_names(text: str) -> None:
    names = [piece.name for piece in pieces(text) if isinstance(piece, Reference)]

    assert all(is_identifier(name) for name in names)
    assert expand(text, dict.fromkeys(names, ""), keep_unset=True) == "".join(
        piece for piece in pieces(text) if isinstance(piece, str)
    )
