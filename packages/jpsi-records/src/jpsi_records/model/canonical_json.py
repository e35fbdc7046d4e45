"""Writes canonical JSON (RFC 8785): one text for each value, for any order of keys and spelling of numbers.

The canonical key of a computation and the id of a plan are made of such texts, so that equal values have
equal digests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

# The exponents between which ECMAScript's Number::toString, to which the RFC refers, writes none.
_SHORTEST_PLAIN, _LONGEST_PLAIN = -6, 21


def canonical(value: Any) -> str:  # noqa: ANN401  any JSON value
    """Return the canonical text of a JSON value.

    >>> canonical({"b": [1.0, None], "a": "é"})
    '{"a":"é","b":[1,null]}'

    Raises:
        ValueError: it is no JSON value, or has a number that is not exact as a double.
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return f"[{','.join(map(canonical, value))}]"
    raise ValueError(f"{value!r} is not a JSON value")


def _mapping(value: Mapping[Any, Any]) -> str:
    for key in value:
        if not isinstance(key, str):
            msg = f"the key {key!r} is not text"
            raise ValueError(msg)  # noqa: TRY004  ValueError for all values without JSON
    ordered = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{_text(key)}:{canonical(value[key])}" for key in ordered) + "}"


def _text(value: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{value!r} is not Unicode text")
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if isinstance(value, int) and number != value:
        raise ValueError(f"{value} is too large to be exact as a JSON number; write it as text")
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a JSON number")
    return _shortest(number)


def _shortest(value: float) -> str:
    """Return a double as ECMAScript writes it; Python finds the same digits and formats them differently."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """Return digits as a number with the decimal point after the first `point` digits."""
    if len(digits) <= point <= _LONGEST_PLAIN:
        return digits.ljust(point, "0")
    if 0 < point <= _LONGEST_PLAIN:
        return f"{digits[:point]}.{digits[point:]}"
    if _SHORTEST_PLAIN < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"
