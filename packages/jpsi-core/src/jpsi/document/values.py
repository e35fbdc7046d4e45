"""The values of a job document, read as the types that they must have, and the problems found in them."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from jpsi.model import DocumentError, InvalidJobException

T = TypeVar("T")
#: The path of a value in a document: the keys and indexes that lead to it.
ValuePath = tuple[str | int, ...]


@attrs.define(slots=True)
class Problems:
    """All problems of one document.

    Values inside a wrong value are not checked: `add` ignores them.
    """

    #: The document's name, usually its file name.
    source: str
    #: The line, from 1, of a value or its key, if it is known.
    lines: dict[ValuePath, int] = attrs.field(factory=dict)
    #: True if unknown keys are warnings, not problems.
    is_lenient: bool = False
    warnings: list[str] = attrs.field(factory=list)
    _found: list[tuple[int, str]] = attrs.field(factory=list)
    _wrong: set[ValuePath] = attrs.field(factory=set)

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: ValuePath, sentence: str) -> None:
        """Note that the value at `path` is wrong."""
        if not any(path[:length] in self._wrong for length in range(len(path) + 1)):
            self._wrong.add(path)
            self.add_beside(path, sentence)

    def add_beside(self, path: ValuePath, sentence: str, line: int | None = None) -> None:
        """Note a problem at `path`, on `line`, after which the value at that path can still be checked."""
        line = line or self._line(path)
        self._found.append((line, self.located(path, sentence, line)))

    def located(self, path: ValuePath, sentence: str, line: int | None = None) -> str:
        """Return the sentence with its location in front: `job.yaml:12: tasks[0].command: ...`."""
        line = line or self._line(path)
        parts = [f"{self.source}:{line}" if line else self.source, format_path(path), sentence]
        return ": ".join(filter(None, parts))

    def has_overlap(self, path: ValuePath) -> bool:
        """Return True if the value at `path`, a value in it or a value around it was found wrong."""
        return any(path[: len(wrong)] == wrong[: len(path)] for wrong in self._wrong)

    def error(self) -> InvalidJobException:
        """Return one DocumentError that names every problem, in the order of their lines."""
        found = sorted(self._found, key=lambda problem: problem[0])
        return DocumentError.of(self.source, [sentence for _, sentence in found])

    def _line(self, path: ValuePath) -> int:
        lengths = range(len(path), -1, -1)
        return next((self.lines[path[:length]] for length in lengths if path[:length] in self.lines), 0)


@attrs.frozen(slots=True)
class Value:
    """A value of a document.

    If the value does not have the requested type, a method notes the problem and returns a harmless value of
    that type, so that the reader of the document can go on and find the other problems.
    """

    raw: Any  # whatever the document holds there
    path: ValuePath
    problems: Problems

    @property
    def is_wrong(self) -> bool:
        """True if this value, a value in it or a value around it was found wrong."""
        return self.problems.has_overlap(self.path)

    def wrong(self, sentence: str) -> None:
        """Note that this value is wrong."""
        self.problems.add(self.path, sentence)

    def unknown(self, sentence: str) -> None:
        """Note that the key of this value has no effect."""
        if self.problems.is_lenient:
            self.problems.warnings.append(self.located(sentence))
        else:
            self.wrong(sentence)

    def must_be(self, what: str, hint: str = "") -> None:
        """Note that this value has the wrong type or content."""
        self.wrong(f"must be {what}, not {shown(self.raw)}{hint}")

    def located(self, sentence: str) -> str:
        """Return the sentence with the location of this value in front."""
        return self.problems.located(self.path, sentence)

    def child(self, step: str | int, raw: object = None) -> Value:
        """Return the value one step further inside, present in the document or not."""
        return Value(raw, (*self.path, step), self.problems)

    def _of(self, kind: type[T], what: str, hint: str = "") -> T:
        """Return this value if it is of a kind, else the empty value of that kind."""
        if isinstance(self.raw, kind):
            return self.raw
        self.must_be(what, hint)
        return kind()

    def text(self) -> str:
        """Return this value as text."""
        text = self._of(str, "text", "; put it in quotes" if isinstance(self.raw, bool | int | float) else "")
        return text and str(self.anything() or "")

    def boolean(self) -> bool:
        """Return this value as true or false."""
        return self._of(bool, "true or false")

    def integer(self, least: int | None = None) -> int:
        """Return this value as a whole number, of at least `least`."""
        if type(self.raw) is int and (least is None or self.raw >= least):
            return self.raw
        self.must_be("a whole number" if least is None else f"a whole number of at least {least}")
        return 1

    def one_of(self, choices: Sequence[str]) -> str:
        """Return this value as one of some words."""
        if self.raw not in choices:
            self.must_be(f"one of {', '.join(choices)}", did_you_mean(self.raw, choices))
            return choices[0]
        return str(self.raw)

    def anything(self) -> Any:  # noqa: ANN401  whatever JSON can express
        """Return this value unchanged; None if a document cannot hold it."""
        found = list(inexpressible(self.raw, self.path))
        for path, sentence in found:
            self.problems.add(path, sentence)
        return None if found else self.raw

    def items(self) -> list[Value]:
        """Return this value as a list."""
        return [self.child(index, item) for index, item in enumerate(self._of(list, "a list"))]

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
        found = {key: self.child(key, item) for key, item in self._of(dict, "a mapping").items()}
        for key, value in found.items():
            if _LONE_SURROGATE.search(key):
                value.wrong(f"is a key that {_SURROGATE}")
        return found

    def free_mapping(self) -> dict[str, Any]:
        """Return this value as a mapping to values of any type."""
        return self._of(dict, "a mapping") and (self.anything() or {})

    def fields(
        self, required: Sequence[str], optional: Iterable[str] = (), places: Mapping[str, str] | None = None
    ) -> dict[str, Value]:
        """Return the values in this mapping by key: the required ones, and the optional ones that it has.

        An unknown key is a problem; `places` are where keys belong that are not known here.
        """
        known = dict.fromkeys([*required, *optional])
        found = self.mapping()
        for key, value in found.items():
            if key not in known:
                place = (places or {}).get(key)
                value.wrong(
                    f"belongs in {place}" if place else f"is not known here{did_you_mean(key, known)}"
                )
        for key in required:
            if key not in found:
                found[key] = self.child(key)
                found[key].wrong("is missing")
        return {key: found[key] for key in known if key in found}


def inexpressible(value: object, path: ValuePath = ()) -> Iterator[tuple[ValuePath, str]]:
    """Yield the paths in a plain value that no document can hold, and why."""
    if isinstance(value, dict):
        for key, item in value.items():
            if _LONE_SURROGATE.search(key):
                yield (*path, key), f"is a key that {_SURROGATE}"
            yield from inexpressible(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from inexpressible(item, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"must be a finite number, not {value}"
    elif isinstance(value, int) and value.bit_length() > _BITS:
        yield path, "is a number with too many digits"
    elif isinstance(value, str) and _LONE_SURROGATE.search(value):
        yield path, _SURROGATE


def format_path(path: ValuePath) -> str:
    """Return a path as a user would write it: `tasks[0].command`."""
    steps = [f".{it}" if _WORD.fullmatch(str(it)) else f"[{shown(it)}]" for it in path]
    return _cut("".join(steps).removeprefix("."), 200)


def shown(value: object) -> str:
    """Describe a value briefly in the document's own syntax, for a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return _cut(repr(value) if isinstance(value, str) else json.dumps(value), 60)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the end of a sentence that suggests a known word; empty if none is close."""
    close = difflib.get_close_matches(word, known, n=1) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


#: Python writes and reads no more than 4300 decimal digits.
_BITS = 14_000
# U+DC80 to U+DCFF represent the bytes of a file name that are not UTF-8 (PEP 383).
_LONE_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_SURROGATE = "contains a lone surrogate, which no encoding can express"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
