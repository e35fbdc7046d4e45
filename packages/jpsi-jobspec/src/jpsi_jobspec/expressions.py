"""Expressions of names: `a|b`, the first that can be had, and `a&b`, both."""

from __future__ import annotations

import re

from .model import Expression
from .text import Value
from .values import NAME, Reader, kind


def read_expression(value: Value, reader: Reader) -> Expression | None:
    """The expression that a value is; `,` is `&`, and a list has alternatives."""
    if isinstance(value.content, list) and value.content:
        parts = [read_expression(item, reader) for item in value.content]
        return Expression(tuple(it for part in parts if part for it in part.alternatives), at=value.at)
    if not isinstance(value.content, str):
        says = f"must be names joined by | and &, not {kind(value)}"
        reader.findings.wrong("JS031", value.at, says, "write a name, a|b or a&b")
        return None
    terms = [re.split(r"[&,]", term) for term in value.content.split("|")]
    alternatives = tuple(tuple(name.strip() for name in names) for names in terms)
    for name in dict.fromkeys(name for names in alternatives for name in names):
        if not NAME.fullmatch(name):
            missing = "a name is missing" if not name else f"{name!r} is no name"
            reader.findings.wrong(
                "JS031", value.at, f"is {value.content!r}, in which {missing}", "write a|b or a&b"
            )
            return None
    return Expression(alternatives, at=value.at)
