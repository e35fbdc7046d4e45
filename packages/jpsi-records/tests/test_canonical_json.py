from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_records.model.canonical_json import canonical

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
# The text of a number represents a double.
read = json.JSONDecoder(parse_int=lambda text: int(float(text))).decode
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(VALUES)
def test_the_text_is_json_of_an_equal_value(value: object) -> None:
    assert read(canonical(value)) == value


@given(VALUES)
def test_a_document_read_back_has_the_same_text(value: object) -> None:
    assert canonical(read(canonical(value))) == canonical(value)


@given(st.dictionaries(TEXT, st.integers(0, 9)), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, int], random: object) -> None:
    items = list(value.items())
    random.shuffle(items)  # type: ignore[attr-defined]  # hypothesis's Random

    assert canonical(dict(items)) == canonical(value)


# Appendix B of RFC 8785, https://www.rfc-editor.org/rfc/rfc8785
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.3333332, "333333333.3333332"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (1424953923781206.2, "1424953923781206.2"),
        (10.0, "10"),
        (0.1, "0.1"),
    ],
    ids=str,
)
def test_numbers_are_spelled_as_in_the_rfc(number: float, text: str) -> None:
    assert canonical(number) == text


def test_keys_are_in_the_order_of_utf_16() -> None:
    """Not of code points: a surrogate pair comes before code points above the surrogates."""
    assert canonical({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53 + 1, "\ud800", {1: 2}, b"a", {1}], ids=repr)
def test_values_that_json_cannot_express_exactly_are_refused(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each says something else
        canonical([value])
