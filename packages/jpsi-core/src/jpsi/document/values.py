"""The values of a job document, read as the types that they must have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from jpsi.document.problems import Place, Problems, did_you_mean, shown


@attrs.frozen(slots=True)
class Value:
    """A value of a document.

    If the value does not have the requested type, a method notes the mistake and returns a harmless value of
    that type, so that the reader of the document can go on and find the other mistakes.
    """

    raw: Any  # whatever the document holds there
    place: Place
    mistakes: Problems

    def wrong(self, sentence: str) -> None:
        """Note that this value is wrong."""
        self.mistakes.add(self.place, sentence)

    def doubtful(self, sentence: str) -> None:
        """Note a warning about this value."""
        self.mistakes.doubts.append(self.mistakes.located(self.place, sentence))

    def must_be(self, what: str, hint: str = "") -> None:
        """Note that this value has the wrong type or content."""
        self.wrong(f"must be {what}, not {shown(self.raw)}{hint}")

    def child(self, step: str | int, raw: object = None) -> Value:
        """Return the value one step further inside, present in the document or not."""
        return Value(raw, (*self.place, step), self.mistakes)

    def text(self) -> str:
        """Return this value as text."""
        if not isinstance(self.raw, str):
            quote = "; put it in quotes" if isinstance(self.raw, bool | int | float) else ""
            self.must_be("text", quote)
            return ""
        return str(self.anything() or "")

    def boolean(self) -> bool:
        """Return this value as true or false."""
        if not isinstance(self.raw, bool):
            self.must_be("true or false")
            return False
        return self.raw

    def integer(self) -> int:
        """Return this value as a whole number."""
        if type(self.raw) is not int:
            self.must_be("a whole number")
            return 1
        return self.raw

    def count(self) -> int:
        """Return this value as a whole number of at least 1."""
        if type(self.raw) is not int or self.raw < 1:
            self.must_be("a whole number of at least 1")
            return 1
        return self.raw

    def one_of(self, choices: Sequence[str]) -> str:
        """Return this value as one of some words."""
        if self.raw not in choices:
            self.must_be(f"one of {', '.join(choices)}", did_you_mean(self.raw, choices))
            return choices[0]
        return str(self.raw)

    def anything(self) -> Any:  # noqa: ANN401  whatever JSON can express
        """Return this value unchanged; None if a document cannot hold it."""
        found = list(inexpressible(self.raw, self.place))
        for place, sentence in found:
            self.mistakes.add(place, sentence)
        return None if found else self.raw

    def items(self) -> list[Value]:
        """Return this value as a list."""
        if not isinstance(self.raw, list):
            self.must_be("a list")
            return []
        return [self.child(index, item) for index, item in enumerate(self.raw)]

    def only(self, what: str) -> Value:
        """Return the only item of this list."""
        items = self.items()
        if not items:
            self.wrong(f"must hold exactly one {what}, but is empty")
            return self.child(0)
        for item in items[1:]:
            item.wrong(f"is one too many; there must be exactly one {what}")
        return items[0]

    def mapping(self) -> dict[str, Value]:
        """Return this value as a mapping."""
        if not isinstance(self.raw, dict):
            self.must_be("a mapping")
            return {}
        found = {key: self.child(key, item) for key, item in self.raw.items()}
        for key, value in found.items():
            if _LONE_SURROGATE.search(key):
                value.wrong(f"is a key that {_SURROGATE}")
        return found

    def free_mapping(self) -> dict[str, Any]:
        """Return this value as a mapping to values of any type."""
        return self.anything() or {} if isinstance(self.raw, dict) else self.mapping()

    def fields(self, required: Sequence[str], optional: Iterable[str] = ()) -> dict[str, Value]:
        """Return the values in this mapping by key: the required ones, and the optional ones that it has."""
        known = {**dict.fromkeys(required), **dict.fromkeys(optional)}
        found = self.mapping()
        for key, value in found.items():
            if key not in known:
                value.wrong(f"is not known here{did_you_mean(key, known)}")
        for key in required:
            if key not in found:
                found[key] = self.child(key)
                found[key].wrong("is missing")
        return {key: found[key] for key in known if key in found}


def inexpressible(value: object, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the places in a plain value that no job document can hold, and why."""
    if isinstance(value, dict):
        for key, item in value.items():
            if _LONE_SURROGATE.search(key):
                yield (*place, key), f"is a key that {_SURROGATE}"
            yield from inexpressible(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from inexpressible(item, (*place, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, f"must be a finite number, not {value}"
    elif isinstance(value, int) and value.bit_length() > _BITS:
        yield place, "is a number with too many digits"
    elif isinstance(value, str) and _LONE_SURROGATE.search(value):
        yield place, _SURROGATE


#: Python writes and reads no more than 4300 decimal digits.
_BITS = 14_000
# U+DC80 to U+DCFF represent the bytes of a file name that are not UTF-8 (PEP 383).
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_SURROGATE = "contains a lone surrogate, which no encoding can express"
