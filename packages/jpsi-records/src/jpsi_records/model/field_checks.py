"""Checks and converts the fields of a request, whose values may still be any YAML value.

The other modules of this package use it, so that all problems of a request are reported together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from .paths import place

#: For each field by name, a check of its value, and in words what the check accepts.
FieldChecks = Mapping[str, tuple[Callable[[Any], bool], str]]


def field_problems(value: attrs.AttrsInstance, checks: FieldChecks) -> Iterator[str]:
    """Yield the problems of the fields that a value has; None is valid where it is the default."""
    fields = attrs.fields_dict(type(value))
    for name in (it for it in checks if it in fields):
        is_valid, accepted = checks[name]
        it = getattr(value, name)
        if not is_valid(it) and not (it is None and fields[name].default is None):
            yield f"{name} must be {accepted}, not {it!r}"


def is_number(value: Any) -> bool:  # noqa: ANN401  any YAML value
    """Return True for a finite number."""
    # A comparison: `math.isfinite` raises for a whole number that is larger than any float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_whole(value: Any) -> bool:  # noqa: ANN401  as above
    """Return True for a whole number, 0 or more."""
    return type(value) is int and value >= 0


def is_count(value: Any) -> bool:  # noqa: ANN401  as above
    """Return True for a whole number above 0."""
    return type(value) is int and value > 0


def is_text(value: Any) -> bool:  # noqa: ANN401  as above
    """Return True for text that is not empty."""
    return isinstance(value, str) and value != ""


def are_texts(value: Any) -> bool:  # noqa: ANN401  as above
    """Return True for a tuple of texts."""
    return isinstance(value, tuple) and all(isinstance(it, str) for it in value)


def as_tuple(value: Any) -> Any:  # noqa: ANN401  as above
    """Return a list as a tuple, and any other value as it is."""
    return tuple(value) if isinstance(value, list) else value


def as_place(path: Any, normalize: Callable[[str], str] = place) -> Any:  # noqa: ANN401  as above
    """Return a normalized path, and any other value as it is."""
    try:
        return normalize(path) if isinstance(path, str) else path
    except ValueError:
        return path
